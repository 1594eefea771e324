/* role.h - what the three roles say to each other
 *
 * Fixed-size requests over SOCK_SEQPACKET, descriptors by SCM_RIGHTS. These peers trust
 * each other: all are ours, started before the first byte of a client was read. What a
 * client said reaches the launcher only as numbers in a plan.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_ROLE_H
#define WV_SUPERVISOR_ROLE_H

#include <stdint.h>

#include "base/err.h"
#include "isolation/cgroup.h"
#include "isolation/plan.h"

enum wv_role_msg {
    /* supervisor -> launcher (PID 1 of the outer pid namespace) */
    WV_ROLE_TEMPLATE = 1, /* make a template launcher; fd: its end of a socketpair */
    /* supervisor -> template launcher; fds: lifeline, net, user (if mapped), cgroup2
     * directory (if cgroup2), joins, works, lease (if mapped) */
    WV_ROLE_LAUNCH,
    /* template launcher -> supervisor */
    WV_ROLE_READY,    /* the template stands, or err says why not */
    WV_ROLE_LAUNCHED, /* fds: pidfd, read end of the error pipe; or err and none */
    WV_ROLE_REAPED,   /* PID 1 of ticket ended with status */
    /* supervisor -> janitor */
    WV_ROLE_SLOT,     /* make one slot for the pool */
    WV_ROLE_RELEASE,  /* number: its cgroups and lease can go */
    WV_ROLE_USAGE,    /* read the counters of slot number */
    WV_ROLE_BUILD,    /* unpack a template */
    WV_ROLE_FORGET,   /* remove a template */
    WV_ROLE_PAUSE,    /* freeze (flag 1) or thaw (flag 0) slot number */
    WV_ROLE_TEMPLATES,
    /* janitor -> supervisor */
    WV_ROLE_SLOTTED,  /* struct wv_slot; fds in its order */
    WV_ROLE_USED,
    WV_ROLE_DONE,     /* ticket's job ended; err.code 0 when well */
    WV_ROLE_NODE,     /* facts about this machine, packed "name=state=evidence" strings */
};

/* A template: the host's own tree by allow list, or a directory that wovyr unpacked. */
enum wv_template_kind { WV_TEMPLATE_HOST = 1, WV_TEMPLATE_ROOTFS };

/* Everything made ahead for one sandbox, used once. Descriptors travel in this order:
 * net, user (if mapped), cgroup2 (if cgroup2), joins, works, sets, lease (if mapped). */
struct wv_slot {
    uint32_t number;       /* names its cgroups: s<number> */
    uint32_t uid_base;     /* first uid of the range, 0 when not mapped */
    uint8_t mapped, cgroup2, joins, works;
    uint8_t set_memory;    /* 1: a memory limit file comes (bytes) */
    uint8_t set_swap;      /* 1: v1 memory.memsw file comes (bytes), after memory */
    uint8_t set_pids;      /* 1: pids.max comes */
    uint8_t set_cpu;       /* 1: v1 cpu.cfs_quota_us (microseconds of a 10 ms period);
                              2: v2 cpu.max ("<quota> 10000") */
};

struct wv_role_msg_head {
    uint32_t type;
    uint32_t number;  /* slot or template index */
    uint64_t ticket;  /* the supervisor's; comes back in the answer */
    int32_t status;
    uint32_t flag;
    struct wv_err err; /* code 0: fine */
};

struct wv_role_request {
    struct wv_role_msg_head head;
    union {
        struct wv_plan plan;   /* LAUNCH */
        struct wv_slot slot;   /* SLOTTED */
        struct wv_usage usage; /* USED */
        struct {
            uint32_t kind;     /* enum wv_template_kind */
            char name[128];
            char source[4096]; /* BUILD: host path; TEMPLATE rootfs: store directory */
        } template;
        struct {
            uint32_t len;
            uint8_t facts[8192];
        } node;
    } u;
};

#endif
