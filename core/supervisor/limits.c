/* limits.c - what a client asked of a session: checked, applied, and said back
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "isolation/cgroup.h"

#define MIB (1024u * 1024u)
#define MEMORY_MIN (16u * MIB)
#define MEMORY_BESIDE_FILES (64u * MIB) /* what programs need when the disk is full */
#define DISK_MIN MIB
#define DISK_DEFAULT (1024u * MIB)
#define CPU_MIN 100 /* thousandths: the kernel takes no quota below 1 ms of 10 */
#define PIDS_MIN 8  /* the agent, its spare, a command's parent and the command */
#define BYTES_PER_INODE 4096
#define INODES_MIN 1024u

static int wrong(struct wv_err *err, int code, const char *field, const char *why)
{
    wv_fail(err, code, "open", "%s", why);
    snprintf(err->field, sizeof err->field, "limits.%s", field);
    return code;
}

int wv_limits_check(struct wv_limits *limits, const struct wv_msg_OPEN *open,
                    struct wv_err *err)
{
    *limits = (struct wv_limits){
        .memory = open->memory,
        .disk = open->disk,
        .cpu_milli = open->cpu_milli,
        .pids = open->pids,
        .nofile = open->nofile,
        .best = open->flags,
    };
    if (limits->memory > 0 && limits->memory < MEMORY_MIN)
        return wrong(err, WV_EINVALID, "memory", "memory is at least 16M");
    if (limits->cpu_milli > 0 && limits->cpu_milli < CPU_MIN)
        return wrong(err, WV_EINVALID, "cpus", "cpus is at least 0.1");
    if (limits->pids > 0 && limits->pids < PIDS_MIN)
        return wrong(err, WV_EINVALID, "pids", "pids is at least 8");
    if (limits->disk > 0 && limits->disk < DISK_MIN)
        return wrong(err, WV_EINVALID, "disk", "disk is at least 1M");
    if (limits->memory == 0 || limits->disk == 0)
        return 0;
    if (limits->disk + MEMORY_BESIDE_FILES < limits->disk ||
        limits->disk + MEMORY_BESIDE_FILES > limits->memory)
        return wrong(
            err, WV_EINVALID, "disk",
            "files are kept in memory, and programs need 64M beside them: lower "
            "disk, or raise memory");
    return 0;
}

/* --- can it be enforced? ----------------------------------------------------- */

struct mechanism {
    const char *field;
    enum wv_guarantee guarantee;
    uint32_t flag;
    uint64_t asked;
    int there;
};

static void list_mechanisms(const struct wv_limits *limits, const struct wv_slot *slot,
                            struct mechanism out[3])
{
    out[0] = (struct mechanism){"memory", WV_HAS_MEMORY, WV_OPEN_BEST_MEMORY,
                                limits->memory, slot->set_memory};
    out[1] = (struct mechanism){"cpus", WV_HAS_CPU, WV_OPEN_BEST_CPUS,
                                limits->cpu_milli, slot->set_cpu};
    out[2] = (struct mechanism){"pids", WV_HAS_PIDS, WV_OPEN_BEST_PIDS, limits->pids,
                                slot->set_pids};
}

int wv_limits_fit(const struct wv_limits *limits, const struct wv_slot *slot,
                  const struct wv_node *node, struct wv_err *err)
{
    struct mechanism all[3];

    list_mechanisms(limits, slot, all);
    for (size_t i = 0; i < 3; i++) {
        char why[200];

        if (all[i].asked == 0 || all[i].there || (limits->best & all[i].flag) != 0)
            continue;
        snprintf(why, sizeof why,
                 "cannot be enforced here (%s); name it in best_effort to "
                 "go on without",
                 node->facts[all[i].guarantee].evidence);
        return wrong(err, WV_EUNSUPPORTED, all[i].field, why);
    }
    return 0;
}

/* --- applying ---------------------------------------------------------------- */

static int put(int fd, const char *text, const char *field, struct wv_err *err)
{
    if (write(fd, text, strlen(text)) >= 0)
        return 0;
    wv_fail_errno(err, "cgroup", "setting it to %s", text);
    snprintf(err->field, sizeof err->field, "limits.%s", field);
    return err->code;
}

int wv_limits_apply(const struct wv_limits *limits, const struct wv_pooled *pooled,
                    struct wv_err *err)
{
    const struct wv_slot *slot = &pooled->slot;
    size_t at = 1u + slot->mapped + slot->cgroup2 + slot->joins + slot->works;
    char text[48];
    int rc = 0;

    snprintf(text, sizeof text, "%llu", (unsigned long long)limits->memory);
    if (slot->set_memory && limits->memory > 0)
        rc = put(pooled->fds[at], text, "memory", err);
    at += slot->set_memory;
    if (rc == 0 && slot->set_swap && limits->memory > 0)
        rc = put(pooled->fds[at], text, "memory", err);
    at += slot->set_swap;
    snprintf(text, sizeof text, "%u", limits->pids);
    if (rc == 0 && slot->set_pids && limits->pids > 0)
        rc = put(pooled->fds[at], text, "pids", err);
    at += slot->set_pids;
    snprintf(text, sizeof text, "%llu %d",
             (unsigned long long)limits->cpu_milli * WV_CG_PERIOD_US / 1000,
             WV_CG_PERIOD_US);
    if (slot->set_cpu == 1) /* version 1 has the period in a file of its own */
        text[strcspn(text, " ")] = '\0';
    if (rc == 0 && slot->set_cpu && limits->cpu_milli > 0)
        rc = put(pooled->fds[at], text, "cpus", err);
    return rc;
}

/* What fits beside the programs when only memory was given. */
static uint64_t disk_of(const struct wv_limits *limits)
{
    uint64_t room = limits->memory > 2 * MEMORY_BESIDE_FILES
                        ? limits->memory - MEMORY_BESIDE_FILES
                        : limits->memory / 2;

    if (limits->disk > 0)
        return limits->disk;
    return limits->memory == 0 || room > DISK_DEFAULT ? DISK_DEFAULT : room;
}

void wv_limits_plan(const struct wv_limits *limits, const struct wv_slot *slot,
                    struct wv_plan *plan)
{
    unsigned char random[16] = {0};

    *plan = (struct wv_plan){
        .disk = disk_of(limits),
        .memory = limits->memory,
        .cpu_milli = limits->cpu_milli,
        .pids = limits->pids,
        .nofile = limits->nofile,
        .cgroup2 = slot->cgroup2,
        .joins = slot->joins,
        .works = slot->works,
        .mapped = slot->mapped,
    };
    plan->inodes = plan->disk / BYTES_PER_INODE;
    if (plan->inodes < INODES_MIN)
        plan->inodes = INODES_MIN;
    getrandom(random, sizeof random, 0);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(plan->machine_id + 2 * i, 3, "%02x", random[i]);
}

/* --- saying ------------------------------------------------------------------ */

void wv_limits_facts(const struct wv_limits *limits, const struct wv_slot *slot,
                     const struct wv_node *node, struct wv_node *facts)
{
    struct mechanism all[3];

    *facts = *node;
    list_mechanisms(limits, slot, all);
    for (size_t i = 0; i < 3; i++) {
        const char *evidence = node->facts[all[i].guarantee].evidence;
        enum wv_strength strength = node->facts[all[i].guarantee].strength;

        if (all[i].asked == 0)
            wv_fact_set(facts, all[i].guarantee, strength, "%.100s; no limit asked for",
                        evidence);
        else if (all[i].there)
            wv_fact_set(facts, all[i].guarantee, WV_ENFORCED, "%.100s, limit %llu%s",
                        evidence, (unsigned long long)all[i].asked,
                        all[i].guarantee == WV_HAS_CPU ? "/1000 CPUs" : "");
        else
            wv_fact_set(facts, all[i].guarantee, WV_ABSENT, "best effort: %.100s",
                        evidence);
    }
    if (node->facts[WV_HAS_DISK].strength == WV_ENFORCED)
        wv_fact_set(facts, WV_HAS_DISK, WV_ENFORCED, "tmpfs of %llu bytes, in memory",
                    (unsigned long long)disk_of(limits));
}
