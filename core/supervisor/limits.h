/* limits.h - what a client asked of a session: checked, applied, and said back
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_LIMITS_H
#define WV_SUPERVISOR_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "isolation/plan.h"
#include "supervisor/node.h"
#include "supervisor/pool.h"
#include "wire/msg.h"

struct wv_limits {
    uint64_t memory, disk; /* bytes; 0: none asked */
    uint32_t cpu_milli, pids, nofile;
    uint32_t best; /* enum wv_open_flag: asked for, but not a reason to refuse */
};

/* Do the numbers make sense? */
int wv_limits_check(struct wv_limits *limits, const struct wv_msg_OPEN *open,
                    struct wv_err *err);

/* Can this slot enforce them? Before anything has run. */
int wv_limits_fit(const struct wv_limits *limits, const struct wv_slot *slot,
                  const struct wv_node *node, struct wv_err *err);

/* Write them into the slot's files. */
int wv_limits_apply(const struct wv_limits *limits, const struct wv_pooled *pooled,
                    struct wv_err *err);

void wv_limits_plan(const struct wv_limits *limits, const struct wv_slot *slot,
                    struct wv_plan *plan);

/* The node's facts, as they hold for a session with these limits. */
void wv_limits_facts(const struct wv_limits *limits, const struct wv_slot *slot,
                     const struct wv_node *node, struct wv_node *facts);

#endif
