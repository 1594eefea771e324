/* user.h - user namespaces and the ids they are made of
 *
 * A session's ids are a leased range of its own. Its namespace is made by a process
 * that already is the first uid of the range: the kernel charges inotify instances,
 * pending signals and the like to the maker of a namespace and to all above it, so one
 * made by root would let a single guest use up what root and every other guest may
 * have.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_USER_H
#define WV_ISOLATION_USER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Unused in the id tables that distributions and systemd publish. */
#define WV_RANGE_FIRST 0x70000000u
#define WV_RANGE_SIZE 65536u
#define WV_RANGES 4094u

struct wv_subids {
    uint32_t uid, uids, gid, gids; /* first and count; count 0: none */
};

/* 1 when the present user namespace has the ids of all ranges. */
int wv_user_has_ranges(void);

/* Mark the ranges that /etc/subuid or /etc/subgid give to somebody: taken[n] = 1. */
void wv_user_mark_taken(uint8_t taken[WV_RANGES]);

/* The subordinate ids of uid, or counts of 0. */
void wv_user_subids(uid_t uid, struct wv_subids *ids);

/* For the outer namespace of an ordinary user: give the process its maps, 0 is
 * ourselves and 1.. are the subordinate ids. Falls back to 0 alone. Returns how many
 * ids there are. */
int wv_user_map_own(pid_t pid, const struct wv_subids *ids, struct wv_err *err);

/* 0..count-1 of the process's user namespace are base.. of ours. */
int wv_user_map(pid_t pid, uint32_t base, uint32_t count, struct wv_err *err);

/* In a helper: become base and make the namespace, with limits that leave its members
 * no namespaces to make and few of the kernel's per-user objects. Needs its maps
 * afterwards. */
int wv_user_enter(uint32_t base, struct wv_err *err);

#endif
