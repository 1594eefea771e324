/* janitor.h - the role that does everything slow or by path
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_JANITOR_H
#define WV_SUPERVISOR_JANITOR_H

#include <stdint.h>

#include "supervisor/owner.h"

struct wv_janitor_start {
    int sock;     /* SOCK_SEQPACKET to the supervisor */
    int launcher; /* its pidfd: sweeping begins when it is wholly gone; or -1 */
    int user;     /* the launcher's user namespace, for an ordinary user; or -1 */
    uint32_t ids; /* how many ids that has; 0: we are root */
    struct wv_owner *owner;
};

/* Runs in a child of the supervisor until `sock` hangs up; then what bears the owner's
 * name is removed. Returns the status to exit with. */
int wv_janitor_main(const struct wv_janitor_start *start);

#endif
