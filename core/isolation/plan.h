/* plan.h - a policy made concrete: what one sandbox gets. Data only.
 *
 * Fixed size and without pointers, because it crosses process borders as bytes: the
 * supervisor fills it from a checked OPEN, the launcher executes it. Nothing here is
 * parsed and nothing here is a host path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_PLAN_H
#define WV_ISOLATION_PLAN_H

#include <stdint.h>

#include "base/wall.h"

#define WV_JOINS_MAX 6 /* cgroup files that a process writes "0" to */

struct wv_plan {
    uint64_t disk;      /* bytes of the session's one writable store (tmpfs) */
    uint64_t inodes;    /* of the store */
    uint64_t memory;    /* bytes; for RLIMIT_MEMLOCK and the like; the cgroup has the limit */
    uint32_t cpu_milli; /* CPUs * 1000: affinity is set to the CPUs it rounds up to */
    uint32_t pids;      /* RLIMIT_NPROC beside the cgroup */
    uint32_t nofile;    /* RLIMIT_NOFILE */
    uint8_t cgroup2;    /* 1: a cgroup2 directory descriptor comes: be born in it */
    uint8_t joins;      /* cgroup v1 `tasks` descriptors for PID 1 */
    uint8_t works;      /* cgroup descriptors that every exec parent joins */
    uint8_t mapped;     /* 1: a user namespace of its own uid range comes */
    uint32_t omit;      /* test builds: protections to leave out, 1 << enum wv_wall */
    char machine_id[33]; /* hex, fresh per session */
};

#endif
