/* owner.h - the name under which everything stands that outlives a process
 *
 * An owner is one supervisor: 128 random bits. It is alive while the lock in its
 * directory is held; whatever bears the name of a dead one is swept. No pid is stored
 * anywhere, so none can be mistaken for another process.
 *
 *     <run>/lock            held while an owner's directory is made or removed
 *     <run>/<owner>/lock    held by the supervisor for as long as it lives
 *     <run>/uid/<n>         uid range n is leased: names its owner (root only)
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_OWNER_H
#define WV_SUPERVISOR_OWNER_H

#include <stdint.h>

#include "base/err.h"

#define WV_OWNER_LEN 32

struct wv_owner {
    int run;  /* directory of all owners */
    int uid;  /* <run>/uid, or -1 */
    int lock; /* ours, held; -1 in the janitor */
    char id[WV_OWNER_LEN + 1];
};

/* Make a new owner, alive. */
int wv_owner_init(struct wv_owner *owner, int root, struct wv_err *err);

/* Let go of the descriptors; in the janitor, which shares the lock's description, this
 * is what leaves the lock to the supervisor alone. */
void wv_owner_leave(struct wv_owner *owner);

/* Take <run>/lock, waiting. Close the descriptor to give it back. */
int wv_owner_guard(const struct wv_owner *owner, struct wv_err *err);

/* Take the lock of a dead owner: the descriptor, or WV_EAGAIN while it is alive, or
 * WV_ENOT_FOUND. */
int wv_owner_claim(const struct wv_owner *owner, const char *id, struct wv_err *err);

/* Remove a claimed owner's directory, last of all. */
void wv_owner_remove(const struct wv_owner *owner, const char *id);

/* 1 when name looks like an owner's. */
int wv_owner_is_id(const char *name);

/* Lease uid range n: a locked descriptor, or WV_EAGAIN when somebody has it. */
int wv_lease_take(const struct wv_owner *owner, uint32_t n, struct wv_err *err);
void wv_lease_drop(const struct wv_owner *owner, uint32_t n);

/* Drop all leases of a claimed owner, and those whose maker died half-way. */
void wv_lease_sweep(const struct wv_owner *owner, const char *id);

#endif
