/* etc.h - /etc of the host template: an allow list of the host's, and our own accounts
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_ETC_H
#define WV_ISOLATION_ETC_H

#include "base/err.h"

/* Fill the empty directory `to` from the host's /etc. single: one id only, so `user` is
 * another name of it. */
int wv_etc_copy(int to, int single, struct wv_err *err);

#endif
