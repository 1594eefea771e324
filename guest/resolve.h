/* resolve.h - from paths to descriptors, with the rights that the caller has assumed
 *
 * The agent is inside the sandbox, so no path leads out of it. What a path could lead
 * to, by a link that a guest planted, is the agent itself: its descriptors and its
 * memory, by way of /proc. So magic links are never followed, and no file is opened
 * that is not on a file system for files. Every object is first opened without access
 * (O_PATH), looked at, and then opened through that descriptor: nothing can be put in
 * its place in between, and a FIFO or device in the way is never woken.
 *
 * All of these return -1 and set errno on failure; descriptors are close-on-exec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_RESOLVE_H
#define WV_GUEST_RESOLVE_H

#include <sys/stat.h>

#include "guest/path.h"

/* Open without creating. */
int wv_resolve(int at, const char *path, int flags);

/* A directory of that name; not one behind a link, or on another mount (EXDEV). */
int wv_resolve_child(int dir, const char *name, int flags);

/* An O_PATH descriptor again, with access. */
int wv_resolve_again(int fd, int flags);

/* Is fd on a file system of the kernel's own (proc, sysfs, cgroup)? */
int wv_resolve_is_kernel(int fd);

/* fd is a regular file of a file system for files; *st is about it. EISDIR, EINVAL (a
 * FIFO, socket or device) or EOPNOTSUPP (the kernel's). */
int wv_resolve_regular(int fd, struct stat *st);

/* The directory that holds the last part of a path, and that part. */
struct wv_place {
    int dir;       /* O_PATH, owned; -1: none */
    uint16_t made; /* length of the path to the first directory that was made, or 0 */
    char name[256];
};

/* EISDIR or EINVAL when the last part names no entry (the root, ".."). With parents,
 * missing directories on the way are made. */
int wv_place_find(struct wv_place *place, const struct wv_path *path, int parents);

/* While the entry is a symbolic link, go to where that points, be it to nothing. */
int wv_place_follow(struct wv_place *place);

/* Is the entry itself where another file system is mounted? */
int wv_place_is_mount(const struct wv_place *place);

/* Remove what wv_place_find made, as far as it is still empty. */
void wv_place_undo(struct wv_place *place, const struct wv_path *path);

void wv_place_drop(struct wv_place *place); /* for WV_AUTO */

#endif
