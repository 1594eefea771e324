/* spawn.h - start the supervisor from a host that must not notice
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CLIENT_SPAWN_H
#define WV_CLIENT_SPAWN_H

#include "base/err.h"

/* What to execute: an open executable, or (fd -1) a path. */
struct wv_image {
    int fd;
    char path[4096];
};

/* Find the supervisor: path when it is given, else $WOVYR_SUPERVISOR, else the
 * installed one when it is root's and of this very build, else the copy inside this
 * module. */
int wv_image_open(struct wv_image *image, const char *path, struct wv_err *err);
void wv_image_drop(struct wv_image *image);

/* Start it with one end of a new control socket as its descriptor 3; *sock is the other
 * end (non-blocking, close-on-exec). The host gets no child, no SIGCHLD and no copy of
 * its memory; nothing of the host reaches the supervisor but the socket. With
 * WOVYR_DEBUG in the environment it keeps the host's stderr. */
int wv_spawn(const struct wv_image *image, int *sock, struct wv_err *err);

#endif
