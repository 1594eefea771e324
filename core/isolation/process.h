/* process.h - what neither clone nor exec resets in a process
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_PROCESS_H
#define WV_ISOLATION_PROCESS_H

#include "base/err.h"

struct wv_jail;

/* Once, in the launcher, what all its children inherit: no signal ignored, umask 022,
 * ordinary scheduling, the default timer slack, nothing in a core. */
void wv_process_prepare(void);

/* Session and terminal, signal mask, CPUs. */
int wv_process_reset(struct wv_jail *jail, struct wv_err *err);

/* Through /proc/self, while we may still write there: the out-of-memory preference. */
int wv_process_mark(struct wv_jail *jail, struct wv_err *err);

/* uid and gid 0 of the sandbox's user namespace, no other group. */
int wv_process_identity(struct wv_jail *jail, struct wv_err *err);

/* A session keyring of its own, charged to the new identity. */
int wv_process_keyring(struct wv_jail *jail, struct wv_err *err);

/* 0-2 /dev/null, 3 the lifeline, 4.. the works, then the report and the agent's image,
 * which close with the exec. All others are closed. */
int wv_process_files(struct wv_jail *jail, struct wv_err *err);

/* Become the agent. Returns only on failure. */
int wv_process_exec(struct wv_jail *jail, struct wv_err *err);

#endif
