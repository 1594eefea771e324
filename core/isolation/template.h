/* template.h - a mount namespace prepared once, cloned for every sandbox
 *
 * A template launcher builds it, pivots into it and lets go of the host's tree. What a
 * session needs beyond the clone (store, proc, pts, overlay) is mounted by its own
 * child.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_TEMPLATE_H
#define WV_ISOLATION_TEMPLATE_H

#include <stdint.h>

#include "base/err.h"

struct wv_template {
    int rootfs;       /* an unpacked directory; else the host's tree by allow list */
    int unprivileged; /* our namespaces belong to an outer user namespace */
    int single;       /* ... that maps one id only */
    uint64_t masks;   /* which names of proc.c this kernel has, 1 << index */
    int image;        /* the agent's executable */
    int open_image;   /* test builds: the same, readable */
};

/* In a fresh mount namespace: build the template and pivot into it. source: a directory
 * of the template store, for a rootfs. Nothing of the host but what it is made of can
 * be reached afterwards. */
int wv_template_build(struct wv_template *template, const char *source,
                      struct wv_err *err);

/* A small tmpfs with /dev and /proc, attached and still writable, to furnish and pivot
 * into. Returns its mount descriptor. */
int wv_template_shell(const struct wv_template *template, const char *size,
                      const char *inodes, struct wv_err *err);

/* The two kinds: what is theirs of building. */
int wv_template_host_build(struct wv_template *template, struct wv_err *err);
int wv_template_rootfs_build(struct wv_template *template, const char *source,
                             struct wv_err *err);

struct wv_jail;

/* In a session's child: its store, and for a rootfs its own root over the image. */
int wv_template_host_enter(struct wv_jail *jail, struct wv_err *err);
int wv_template_rootfs_enter(struct wv_jail *jail, struct wv_err *err);

#endif
