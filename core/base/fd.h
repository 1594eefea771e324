/* fd.h - descriptors: ownership by scope, and passing them over unix sockets
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_BASE_FD_H
#define WV_BASE_FD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* WV_AUTO(wv_fd_drop) int fd = open(...);  closes fd at the end of the scope. */
#define WV_AUTO(drop) __attribute__((cleanup(drop)))

#define WV_FDS_MAX 16 /* descriptors in one message, at most */

void wv_fd_drop(int *fd);
int wv_fd_take(int *fd); /* hand ownership out: returns *fd and sets it to -1 */
int wv_fd_nonblock(int fd);

/* Send one message with nfds descriptors (SCM_RIGHTS). Retries EINTR; never SIGPIPE.
 * Returns the bytes sent, or negative (WV_EAGAIN when the socket is full). */
ssize_t wv_fd_send(int sock, const void *data, size_t len, const int *fds, size_t nfds,
                   struct wv_err *err);

/* Receive bytes and at most *nfds descriptors (close-on-exec). On return *nfds is what
 * came. MSG_CTRUNC (our descriptor table is full) is WV_ECAPACITY; what did arrive is
 * closed. Returns bytes, 0 on end of file, or negative (WV_EAGAIN: nothing now). */
ssize_t wv_fd_recv(int sock, void *data, size_t len, int *fds, size_t *nfds,
                   struct wv_err *err);

/* Write all of data, blocking; for small files such as cgroup limits. */
int wv_fd_write_all(int fd, const void *data, size_t len);

#endif
