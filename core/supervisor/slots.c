/* slots.c - what is made ahead for one session: namespaces, groups, ids (janitor)
 *
 * Theory of operation. A helper, forked per slot, makes both namespaces, because making
 * them means to enter them: first the network namespace, as ourselves, so that we own
 * it; then, having become the first uid of the range, the user namespace. It passes
 * both descriptors up and waits; its maps can only be written from outside, while it
 * lives.
 *
 *     janitor --fork--> helper: unshare(net), lo up, become base, unshare(user), limits
 *             <-- struct wv_err + [net, user] --
 *             writes uid_map and gid_map, hangs up; the helper ends
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/net.h"

#define HELPER_PATIENCE_S 10

void wv_slots_init(struct wv_slots *slots, const struct wv_owner *owner, uint32_t ids)
{
    uint32_t start = 0;

    memset(slots, 0, sizeof *slots);
    slots->owner = *owner;
    slots->ids = ids;
    slots->next_number = 1;
    wv_cgroups_init(&slots->groups, owner->id);
    if (ids > 0)
        return;
    wv_user_mark_taken(slots->taken);
    /* Supervisors that start together should not queue for the same ranges. */
    if (getrandom(&start, sizeof start, 0) == (ssize_t)sizeof start)
        slots->next_range = start % WV_RANGES;
}

/* --- namespaces -------------------------------------------------------------- */

struct ids {
    uint32_t base, count; /* of the session, seen from here */
    uint32_t first, last; /* groups that may ping */
};

static int make_namespaces(const struct ids *ids, int fds[2], struct wv_err *err)
{
    int rc;

    if (unshare(CLONE_NEWNET) < 0)
        return wv_fail_errno(err, "net", "a network namespace");
    if ((rc = wv_net_prepare(ids->first, ids->last, err)) < 0)
        return rc;
    fds[0] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fds[0] < 0)
        return wv_fail_errno(err, "net", "opening the network namespace");
    if ((rc = wv_user_enter(ids->base, err)) < 0)
        return rc;
    /* Its members must not be able to make namespaces, which they would own. */
    if (unshare(CLONE_NEWUTS) == 0)
        return wv_fail(err, WV_EUNSUPPORTED, "user",
                       "limits on namespaces do not hold");
    fds[1] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    return fds[1] < 0 ? wv_fail_errno(err, "user", "opening the user namespace") : 0;
}

static _Noreturn void help(const struct ids *ids, int sock)
{
    struct wv_err err = {0};
    int fds[2] = {-1, -1};
    char byte;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rc = make_namespaces(ids, fds, &err);
    if (rc < 0)
        err.code = rc;
    wv_fd_send(sock, &err, sizeof err, fds, rc < 0 ? 0 : 2, NULL);
    while (read(sock, &byte, 1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

static int take_namespaces(const struct ids *ids, pid_t helper, int sock, int fds[2],
                           struct wv_err *err)
{
    struct timeval patience = {.tv_sec = HELPER_PATIENCE_S};
    struct wv_err said = {0};
    size_t nfds = 2;
    ssize_t n;
    int rc;

    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    n = wv_fd_recv(sock, &said, sizeof said, fds, &nfds, err);
    if (n < 0)
        return n == WV_EAGAIN ? wv_fail(err, WV_ETIMEOUT, "slot", "a helper hangs")
                              : (int)n;
    if (n == (ssize_t)sizeof said && said.code < 0) {
        *err = said;
        return said.code;
    }
    if (n != (ssize_t)sizeof said || nfds != 2) {
        for (size_t i = 0; i < nfds; i++)
            close(fds[i]);
        return wv_fail(err, WV_ELOST, "slot", "a helper died");
    }
    rc = wv_user_map(helper, ids->base, ids->count, err);
    if (rc < 0) {
        wv_fd_drop(&fds[0]);
        wv_fd_drop(&fds[1]);
    }
    return rc;
}

static int new_namespaces(const struct ids *ids, int fds[2], struct wv_err *err)
{
    int pair[2], rc;
    pid_t helper;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return wv_fail_errno(err, "slot", "a socket pair");
    helper = fork();
    if (helper == 0) {
        close(pair[0]);
        help(ids, pair[1]);
    }
    close(pair[1]);
    if (helper < 0) {
        close(pair[0]);
        return wv_fail_errno(err, "slot", "forking a helper");
    }
    rc = take_namespaces(ids, helper, pair[0], fds, err);
    close(pair[0]);
    kill(helper, SIGKILL); /* not reaped yet, so the pid is its own */
    waitpid(helper, NULL, 0);
    return rc;
}

/* --- leases ------------------------------------------------------------------ */

static int lease_range(struct wv_slots *slots, uint32_t *range, struct wv_err *err)
{
    for (uint32_t tries = 0; tries < WV_RANGES; tries++) {
        uint32_t n = slots->next_range;
        int fd;

        slots->next_range = (n + 1) % WV_RANGES;
        if (slots->taken[n])
            continue;
        fd = wv_lease_take(&slots->owner, n, err);
        if (fd == WV_EAGAIN)
            continue;
        *range = n;
        return fd;
    }
    return wv_fail(err, WV_ECAPACITY, "lease", "all %u uid ranges are in use",
                   WV_RANGES);
}

static struct ids choose_ids(const struct wv_slots *slots, uint32_t range)
{
    uint32_t end = WV_RANGE_FIRST + WV_RANGES * WV_RANGE_SIZE;

    if (slots->ids == 0)
        return (struct ids){WV_RANGE_FIRST + range * WV_RANGE_SIZE, WV_RANGE_SIZE, 0,
                            end};
    if (slots->ids > 1) /* id 0 of the outer namespace is the user himself: left out */
        return (struct ids){1, slots->ids - 1, 1, slots->ids - 1};
    return (struct ids){0, 1, 0, 0};
}

/* --- slots ------------------------------------------------------------------- */

static struct wv_slot_record *new_record(struct wv_slots *slots, struct wv_err *err)
{
    struct wv_slot_record *grown;
    size_t room = slots->room > 0 ? slots->room * 2 : 16;

    for (size_t i = 0; i < slots->room; i++)
        if (slots->records[i].number == 0)
            return &slots->records[i];
    grown = realloc(slots->records, room * sizeof *grown);
    if (grown == NULL) {
        wv_fail(err, WV_ECAPACITY, "slot", "no memory for another slot");
        return NULL;
    }
    memset(grown + slots->room, 0, (room - slots->room) * sizeof *grown);
    slots->records = grown;
    grown += slots->room;
    slots->room = room;
    return grown;
}

struct wv_slot_record *wv_slot_find(struct wv_slots *slots, uint32_t number)
{
    for (size_t i = 0; i < slots->room && number != 0; i++)
        if (slots->records[i].number == number)
            return &slots->records[i];
    return NULL;
}

static void put(int *fds, size_t *nfds, int *fd)
{
    if (*fd >= 0)
        fds[(*nfds)++] = wv_fd_take(fd);
}

/* Move the descriptors to fds in the order that role.h promises. */
static void fill(struct wv_slot *slot, int namespaces[2], struct wv_cgroup *group,
                 int *lease, int *fds, size_t *nfds)
{
    *nfds = 0;
    slot->mapped = 1;
    slot->cgroup2 = group->born >= 0;
    slot->joins = (uint8_t)group->n_joins;
    slot->works = (uint8_t)group->n_works;
    slot->set_memory = group->set_memory >= 0;
    slot->set_swap = group->set_swap >= 0;
    slot->set_pids = group->set_pids >= 0;
    slot->set_cpu = (uint8_t)(group->set_cpu < 0 ? 0 : 1 + group->cpu_v2);
    put(fds, nfds, &namespaces[0]);
    put(fds, nfds, &namespaces[1]);
    put(fds, nfds, &group->born);
    for (unsigned i = 0; i < group->n_joins; i++)
        put(fds, nfds, &group->joins[i]);
    for (unsigned i = 0; i < group->n_works; i++)
        put(fds, nfds, &group->works[i]);
    put(fds, nfds, &group->set_memory);
    put(fds, nfds, &group->set_swap);
    put(fds, nfds, &group->set_pids);
    put(fds, nfds, &group->set_cpu);
    put(fds, nfds, lease);
}

int wv_slot_make(struct wv_slots *slots, struct wv_slot *slot, int *fds, size_t *nfds,
                 struct wv_err *err)
{
    struct wv_slot_record *record = new_record(slots, err);
    WV_AUTO(wv_fd_drop) int lease = -1;
    uint32_t number = slots->next_number, range = 0;
    int namespaces[2] = {-1, -1};
    struct wv_cgroup group;
    struct ids ids;
    int rc;

    if (record == NULL)
        return WV_ECAPACITY;
    if (slots->ids == 0 && (lease = lease_range(slots, &range, err)) < 0)
        return lease;
    ids = choose_ids(slots, range);
    rc = new_namespaces(&ids, namespaces, err);
    if (rc == 0 && (rc = wv_cgroup_make(&slots->groups, number, &group, err)) < 0) {
        wv_fd_drop(&namespaces[0]);
        wv_fd_drop(&namespaces[1]);
    }
    if (rc < 0) {
        if (lease >= 0)
            wv_lease_drop(&slots->owner, range);
        return rc;
    }
    slots->next_number++;
    *record = (struct wv_slot_record){
        .number = number,
        .range = range,
        .leased = lease >= 0,
        .counters = group.counters,
    };
    *slot =
        (struct wv_slot){.number = number, .uid_base = slots->ids == 0 ? ids.base : 0};
    fill(slot, namespaces, &group, &lease, fds, nfds);
    return 0;
}

static void end(struct wv_slots *slots, struct wv_slot_record *record)
{
    if (wv_cgroup_remove(&slots->groups, record->number) != 0) {
        slots->ending += !record->ending;
        record->ending = 1;
        return;
    }
    slots->ending -= record->ending;
    if (record->leased)
        wv_lease_drop(&slots->owner, record->range);
    record->number = 0;
}

void wv_slot_release(struct wv_slots *slots, uint32_t number)
{
    struct wv_slot_record *record = wv_slot_find(slots, number);

    if (record == NULL || record->ending)
        return;
    wv_counters_fini(&record->counters);
    end(slots, record);
}

void wv_slots_retry(struct wv_slots *slots)
{
    for (size_t i = 0; i < slots->room && slots->ending > 0; i++)
        if (slots->records[i].number != 0 && slots->records[i].ending)
            end(slots, &slots->records[i]);
}
