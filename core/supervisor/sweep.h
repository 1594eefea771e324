/* sweep.h - removing what dead owners left behind
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_SWEEP_H
#define WV_SUPERVISOR_SWEEP_H

#include "isolation/cgroup.h"
#include "supervisor/owner.h"

/* Sweep every dead owner but ourselves. Safe beside any number of others doing the
 * same. */
void wv_sweep_others(const struct wv_owner *owner, const struct wv_cgroups *groups);

/* The supervisor is gone: sweep its own owner. */
void wv_sweep_own(const struct wv_owner *owner, const struct wv_cgroups *groups);

#endif
