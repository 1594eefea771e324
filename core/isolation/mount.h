/* mount.h - the file-descriptor mount API (kernel 5.12 and later)
 *
 * What leads to the host's tree is cloned detached, gets its attributes, and only then
 * a place: nobody ever sees it half made, and no path is resolved twice.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_MOUNT_H
#define WV_ISOLATION_MOUNT_H

#include <linux/mount.h> /* MOUNT_ATTR_* */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WV_MOUNT_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

struct wv_mount_option {
    const char *key, *value; /* value NULL: a flag; key NULL: left out */
};

/* A new file system, detached. Returns its mount descriptor. */
int wv_mount_new(const char *type, const struct wv_mount_option *options, size_t n,
                 uint64_t attr, struct wv_err *err);

/* A detached copy of the mount or subtree at path, with (deep) or without its
 * submounts. */
int wv_mount_clone(int at, const char *path, int deep, struct wv_err *err);

/* Add attributes to a detached or attached mount; user >= 0: map ids by that user
 * namespace. */
int wv_mount_restrict(int mount, uint64_t attr, int user, int deep, struct wv_err *err);

/* Give a detached mount its place: at/path must exist, or path "" for `at` itself. */
int wv_mount_put(int mount, int at, const char *path, struct wv_err *err);

/* Make `from` also appear at path, with the attributes it has there and `attr` more. By
 * path, for a session's own mounts, which nobody else can reach yet: a third of the
 * time of a clone, which is a mount namespace of its own to the kernel. */
int wv_mount_bind(const char *from, const char *path, uint64_t attr,
                  struct wv_err *err);

/* No mount event goes in or out of this mount namespace from now on. */
int wv_mount_private(struct wv_err *err);

/* Make the mount at descriptor `root` the root, drop the old one with all below it, and
 * stand in the new one. */
int wv_mount_pivot(int root, struct wv_err *err);

#endif
