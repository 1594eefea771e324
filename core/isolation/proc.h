/* proc.h - a /proc of the sandbox's own processes, without the machine's secrets
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_PROC_H
#define WV_ISOLATION_PROC_H

#include <stdint.h>

#include "base/err.h"

struct wv_jail;

/* Which of the names to be covered this kernel has, asked once for a template. */
uint64_t wv_proc_masks(void);

/* Mount a proc of this pid namespace, still without a place (jail->proc). In an outer
 * user namespace the kernel wants to see another, fully visible one then, so this comes
 * before a pivot. */
int wv_proc_mount(struct wv_jail *jail, struct wv_err *err);

/* Put it to /proc and cover what no guest may see. Needs /dev of a template, with
 * nothing on /dev/shm yet. */
int wv_proc_place(struct wv_jail *jail, struct wv_err *err);

#endif
