/* cgroup.h - control groups of sessions, in either version or both at once
 *
 * Every hierarchy that is used has a directory wovyr/<owner>, and in it s<number> for
 * each session: memory and pids are limited there, cpu and freezing apply to its child
 * `work`, so that the agent beside it answers while the work is throttled or frozen. A
 * controller is taken from version 2 where that offers it, else from version 1.
 *
 * Processes are never moved by pid, which costs 10 ms: a process writes "0" to a
 * descriptor opened here, or is born in its group.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_CGROUP_H
#define WV_ISOLATION_CGROUP_H

#include <stdint.h>

#include "base/err.h"
#include "isolation/plan.h"

enum wv_controller {
    WV_CG_MEMORY,
    WV_CG_PIDS,
    WV_CG_CPU,
    WV_CG_CPUACCT,
    WV_CG_FREEZER,
    WV_CG_CONTROLLERS,
};

#define WV_CG_BIT(controller) (1u << (controller))
#define WV_CG_PERIOD_US                                                                \
    10000 /* of the cpu quota: short, so that nobody waits for long */
#define WV_CG_WORKS_MAX 2
#define WV_CG_HIERARCHIES (WV_CG_CONTROLLERS + 1)

struct wv_hierarchy {
    int top;     /* its directory `wovyr` */
    int owner;   /* below it, the owner's; -1: not used, but swept */
    uint8_t has; /* controllers used from it, WV_CG_BIT */
    uint8_t v2;
};

struct wv_cgroups {
    struct wv_hierarchy at[WV_CG_HIERARCHIES];
    unsigned n;
    uint8_t has; /* all controllers of all of them */
};

enum wv_counter {
    WV_COUNT_MEMORY,
    WV_COUNT_MEMORY_PEAK,
    WV_COUNT_MEMORY_HITS,
    WV_COUNT_OOM,
    WV_COUNT_CPU,
    WV_COUNT_THROTTLED,
    WV_COUNT_PIDS,
    WV_COUNT_PIDS_HITS,
    WV_COUNTS,
};

/* Files that stay open for as long as the session lives, and what to read from them. */
struct wv_counters {
    struct {
        int fd;          /* -1: this kernel has no such counter */
        const char *key; /* NULL: the file is one number */
        unsigned per;    /* divide by this: nanoseconds to microseconds */
    } at[WV_COUNTS];
};

struct wv_cgroup {
    int born; /* version 2 directory to be cloned into, or -1 */
    int joins[WV_JOINS_MAX], works[WV_CG_WORKS_MAX];
    unsigned n_joins, n_works;
    int set_memory, set_swap, set_pids, set_cpu; /* limit files, or -1 */
    uint8_t cpu_v2;
    struct wv_counters counters;
};

/* What a sandbox has used, and how often it ran into its limits. */
struct wv_usage {
    uint64_t cpu_us, memory, memory_peak, pids, oom_kills, pids_hits, throttled_us,
        memory_hits;
};

/* Find what can be used here, by doing it, and make the owner's directories. What
 * cannot is left out: see has. */
void wv_cgroups_init(struct wv_cgroups *groups, const char *owner);
void wv_cgroups_fini(struct wv_cgroups *groups);

/* The same hierarchies, another owner; for sweeping. */
void wv_cgroups_of(const struct wv_cgroups *groups, const char *owner,
                   struct wv_cgroups *other);

/* Make s<number> everywhere; on failure nothing is left. */
int wv_cgroup_make(const struct wv_cgroups *groups, uint32_t number,
                   struct wv_cgroup *made, struct wv_err *err);
void wv_cgroup_fini(
    struct wv_cgroup *made); /* closes descriptors, except the counters */

void wv_counters_init(struct wv_counters *counters);
void wv_counters_fini(struct wv_counters *counters);
void wv_counters_read(const struct wv_counters *counters, struct wv_usage *usage);

/* Stop or continue the work of a session; the agent goes on. */
int wv_cgroup_freeze(const struct wv_cgroups *groups, uint32_t number, int on,
                     struct wv_err *err);

/* One pass of ending a session's groups: what lives is killed, what is empty removed.
 * 0: all gone; 1: ask again. */
int wv_cgroup_remove(const struct wv_cgroups *groups, uint32_t number);

/* The same for everything the owner has, then its directories. */
int wv_cgroups_remove(struct wv_cgroups *groups, const char *owner);

#endif
