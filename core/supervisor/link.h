/* link.h - the supervisor's end of a socket to another role: never blocks, loses
 * nothing
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_LINK_H
#define WV_SUPERVISOR_LINK_H

#include <stddef.h>

#include "base/err.h"
#include "base/fd.h"
#include "supervisor/role.h"

struct wv_link_item;

struct wv_link {
    int sock; /* SOCK_SEQPACKET, non-blocking; -1: the role is gone */
    struct wv_link_item *first, *last; /* what the socket had no room for, in order */
};

struct wv_link_in {
    struct wv_role_request req; /* what the sender cut off is zero */
    int fds[WV_FDS_MAX];        /* yours; take them by setting nfds to 0 */
    size_t nfds;
};

/* A SOCK_SEQPACKET pair: ours without blocking, theirs for the other role. */
int wv_link_pair(struct wv_link *link, int *theirs, struct wv_err *err);
void wv_link_fini(struct wv_link *link);

/* Send the first len bytes of req. The descriptors are closed when they went, or when
 * they cannot any more. */
int wv_link_send(struct wv_link *link, const struct wv_role_request *req, size_t len,
                 const int *fds, size_t nfds, struct wv_err *err);

/* Try again what waits. 1: all went. */
int wv_link_flush(struct wv_link *link);

/* 1: a message; 0: none now; negative: the role is gone. */
int wv_link_recv(struct wv_link *link, struct wv_link_in *in, struct wv_err *err);

/* Close the descriptors of in that nobody took. */
void wv_link_in_drop(struct wv_link_in *in);

#endif
