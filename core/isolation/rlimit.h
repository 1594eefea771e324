/* rlimit.h - resource limits of a sandbox, every one of them set
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_RLIMIT_H
#define WV_ISOLATION_RLIMIT_H

#include "base/err.h"

struct wv_jail;

int wv_rlimit_set(struct wv_jail *jail, struct wv_err *err);

#endif
