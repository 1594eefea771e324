/* roles.h - starting the other roles, before the first byte of a client is read
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_ROLES_H
#define WV_SUPERVISOR_ROLES_H

#include <stdint.h>

#include "supervisor/link.h"
#include "supervisor/owner.h"

struct wv_roles {
    int root; /* we may do what root may; else everything hangs below a user namespace
               */
    uint32_t ids; /* how many ids that has; 0 for root */
    struct wv_owner owner;
    struct wv_link launcher, janitor;
    int launcher_pid;  /* pidfds */
    struct wv_err err; /* code 0: all are up; else why nothing can be opened */
};

/* name: argv[0] with room for `room` bytes, to be overwritten in the children. */
void wv_roles_start(struct wv_roles *roles, char *name, size_t room);

#endif
