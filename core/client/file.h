/* file.h - a descriptor that a guest handed over, read by the host
 *
 * The guest may hold the same open file, so nothing about it is trusted: only pread,
 * which has no shared position and cannot wait for anybody on a regular file of a file
 * system that the kernel serves by itself; never a mapping, which the guest could cut
 * off.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CLIENT_FILE_H
#define WV_CLIENT_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* 0 when fd may be read: a regular file on an allowed file system. */
int wv_file_check(int fd, struct wv_err *err);

/* Its size at the moment, or negative. */
int64_t wv_file_size(int fd, struct wv_err *err);

/* Up to n bytes from offset; fewer only at the end of the file. */
ssize_t wv_file_read(int fd, uint64_t offset, void *out, size_t n, struct wv_err *err);

/* Copy it to path on the host, at most max bytes (WV_ELIMIT and nothing is left when it
 * has more): a new file beside path, then renamed over it. What is there may only be a
 * regular file. Blocks while it copies. */
int wv_file_save(int fd, const char *path, uint64_t max, struct wv_err *err);

#endif
