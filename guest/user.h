/* user.h - names of this sandbox's own passwd and group files
 *
 * The files may be the guest's own work: every line is bounded and nothing is trusted
 * but that a number is a number.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_USER_H
#define WV_GUEST_USER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define WV_GROUPS_MAX 32

struct wv_user {
    char name[64], home[256], shell[256];
    uid_t uid;
    gid_t gid;
    gid_t groups[WV_GROUPS_MAX];
    int ngroups;
};

/* By name or decimal uid; "" is the default user ("user", else root). WV_ENOT_FOUND
 * with field "user". */
int wv_user_find(const char *name, struct wv_user *user, struct wv_err *err);

/* Names for ids, cached for the turn; decimal when there is none. */
void wv_user_name(uid_t uid, char out[64]);
void wv_group_name(gid_t gid, char out[64]);

/* Take the user's rights for file-system access in this thread, and give them back.
 * WV_EDENIED, and nothing taken, for ids that do not exist in this sandbox. */
int wv_user_assume(const struct wv_user *user);
void wv_user_restore(void);

#endif
