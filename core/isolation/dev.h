/* dev.h - /dev: eight harmless devices, shared by all sandboxes of a template, and the
 * terminals of one
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_DEV_H
#define WV_ISOLATION_DEV_H

#include "base/err.h"

struct wv_jail;

/* A read-only /dev at `at`/dev. Its directories pts, shm and mqueue are empty. */
int wv_dev_build(int at, struct wv_err *err);

/* A devpts of the session's own on /dev/pts. */
int wv_dev_terminals(struct wv_jail *jail, struct wv_err *err);

#endif
