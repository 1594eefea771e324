/* slots.h - what is made ahead for one session: namespaces, groups, ids (janitor)
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_SLOTS_H
#define WV_SUPERVISOR_SLOTS_H

#include <stddef.h>

#include "isolation/cgroup.h"
#include "isolation/user.h"
#include "supervisor/owner.h"
#include "supervisor/role.h"

struct wv_slot_record {
    uint32_t number; /* 0: free */
    uint32_t range;  /* leased, if leased is set */
    uint8_t leased, ending;
    struct wv_counters counters;
};

struct wv_slots {
    struct wv_owner owner;
    struct wv_cgroups groups;
    uint32_t ids; /* of the outer user namespace of an ordinary user; 0: we are root */
    uint32_t next_number, next_range;
    uint8_t taken[WV_RANGES]; /* by /etc/subuid and /etc/subgid */
    struct wv_slot_record *records;
    size_t room;
    unsigned ending; /* records that are to be removed and would not go at once */
};

void wv_slots_init(struct wv_slots *slots, const struct wv_owner *owner, uint32_t ids);

/* Make a slot. fds in the order of struct wv_slot, at most WV_FDS_MAX; yours. */
int wv_slot_make(struct wv_slots *slots, struct wv_slot *slot, int *fds, size_t *nfds,
                 struct wv_err *err);

struct wv_slot_record *wv_slot_find(struct wv_slots *slots, uint32_t number);

/* Give a slot's name and ids back, as soon as its groups are empty. */
void wv_slot_release(struct wv_slots *slots, uint32_t number);

/* Try again what would not go. */
void wv_slots_retry(struct wv_slots *slots);

#endif
