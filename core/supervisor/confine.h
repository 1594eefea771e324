/* confine.h - giving rights up: what a role does not need, it does not keep
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_CONFINE_H
#define WV_SUPERVISOR_CONFINE_H

#include <stdint.h>

#include "base/err.h"

/* Keep only the capabilities 1 << CAP_*, for this process and all it may ever exec. */
int wv_confine_caps(uint64_t keep, struct wv_err *err);

/* From now on: sockets, descriptors, timers, signals by pidfd, memory. No path, no
 * process, no namespace. */
int wv_confine_calls(struct wv_err *err);

#endif
