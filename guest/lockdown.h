/* lockdown.h - what the agent takes from itself and from all that it will start
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_LOCKDOWN_H
#define WV_GUEST_LOCKDOWN_H

#include "base/err.h"

/* Landlock, then seccomp. Both are inherited, never to be undone, so this comes before
 * the first fork. Returns the Landlock ABI in force, 0 where the kernel has none, or
 * negative. */
int wv_lockdown(struct wv_err *err);

#endif
