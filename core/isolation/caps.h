/* caps.h - what root of a sandbox may do
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_CAPS_H
#define WV_ISOLATION_CAPS_H

#include "base/err.h"

struct wv_jail;

/* Needs all capabilities of the sandbox's user namespace. Afterwards nothing outside
 * the mask can be had again, and the mask itself takes effect with the next exec. */
int wv_caps_drop(struct wv_jail *jail, struct wv_err *err);

#endif
