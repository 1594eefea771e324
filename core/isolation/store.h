/* store.h - the one writable store of a session, and its places in the tree
 *
 * One tmpfs, bounded in bytes and inodes, so that `disk` is one number. It is charged
 * to the session's memory.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_STORE_H
#define WV_ISOLATION_STORE_H

#include "base/err.h"

struct wv_jail;

/* Make the store and attach it at path, an existing directory. For a rootfs it also has
 * `upper` and `work`. Returns its mount descriptor. */
int wv_store_make(struct wv_jail *jail, const char *path, struct wv_err *err);

/* From a store attached at /tmp, put the parts to their places, /workspace /run ...,
 * and last its `tmp` over itself. */
int wv_store_place(struct wv_jail *jail, struct wv_err *err);

#endif
