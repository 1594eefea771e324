/* warm.h - a sandbox made ahead, like the last one that was opened
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_WARM_H
#define WV_SUPERVISOR_WARM_H

#include "supervisor/session.h"

/* The one that waits, if it is of this template and has these limits; NULL if not. It is
 * live, and nobody's: what takes it gives it an owner. */
struct wv_session *wv_warm_take(struct wv_supervisor *super,
                                const struct wv_launcher *launcher,
                                const struct wv_limits *limits);

/* session was opened by a client: make one like it, a little later. */
void wv_warm_like(const struct wv_session *session);

/* Make it when it is time; returns when that will be (boottime, ms), 0: never. */
uint64_t wv_warm_tick(struct wv_supervisor *super, uint64_t now);

/* How many of the launcher's sessions are only made ahead: 0 or 1. */
unsigned wv_warm_on(struct wv_supervisor *super, const struct wv_launcher *launcher);

/* Its template is about to be removed. */
void wv_warm_drop(struct wv_supervisor *super, const struct wv_launcher *launcher);

#endif
