/* janitor.c - the role that does everything slow or by path
 *
 * Theory of operation. Requests come one at a time and are answered in order; what
 * takes more than some milliseconds (unpacking, sweeping others) is a child with a
 * pipe. When the supervisor's socket hangs up, however that came about, the supervisor
 * is gone: the launcher is seen to its end (its pid namespace takes every sandbox
 * along), then all that bears our owner's name is removed, and the janitor ends. Killed
 * half-way, the next supervisor's janitor finds the same names and the free lock.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "isolation/cgroup.h"
#include "supervisor/confine.h"
#include "supervisor/node.h"
#include "supervisor/role.h"
#include "supervisor/slots.h"
#include "supervisor/catalog.h"
#include "supervisor/sweep.h"

#define JOBS_MAX 8
#define SWEEP_EVERY_MS 60000
#define RETRY_MS 20
#define LAUNCHER_PATIENCE_MS 30000 /* freeing gigabytes of files in RAM takes time */

/* Namespaces, ids and maps of slots; groups; unpacking. */
#define KEEP                                                                           \
    (1ull << CAP_SYS_ADMIN | 1ull << CAP_NET_ADMIN | 1ull << CAP_SETUID |              \
     1ull << CAP_SETGID | 1ull << CAP_SETPCAP | 1ull << CAP_KILL | 1ull << CAP_CHOWN | \
     1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER | 1ull << CAP_FSETID |              \
     1ull << CAP_MKNOD | 1ull << CAP_SETFCAP)

struct job {
    pid_t pid; /* 0: free; ours until it is reaped */
    int pipe;  /* it writes one struct wv_err and ends */
    struct wv_role_msg_head head;
};

struct janitor {
    int sock, launcher;
    struct wv_slots slots;
    struct job jobs[JOBS_MAX];
    uint64_t next_sweep_ms;
    uint8_t probed;
};

#define UNTIL(member)                                                                  \
    (offsetof(struct wv_role_request, u) +                                             \
     sizeof((struct wv_role_request *)NULL)->u.member)

static void reply(struct janitor *self, struct wv_role_request *out, size_t len,
                  const int *fds, size_t nfds)
{
    struct wv_err err;

    if (wv_fd_send(self->sock, out, len, fds, nfds, &err) >= 0 || nfds == 0)
        return;
    out->head.err = err;
    wv_fd_send(self->sock, out, sizeof out->head, NULL, 0, NULL);
}

static void done(struct janitor *self, const struct wv_role_msg_head *to,
                 const struct wv_err *err)
{
    struct wv_role_msg_head head = *to;

    head.type = WV_ROLE_DONE;
    head.err = *err;
    wv_fd_send(self->sock, &head, sizeof head, NULL, 0, NULL);
}

/* --- jobs: children for what takes long -------------------------------------- */

/* Let go of everything but what the job needs, so that our end is seen by others. */
static void isolate(struct janitor *self, int report)
{
    prctl(PR_SET_NAME, "wovyr-job");
    wv_fd_drop(&self->sock);
    wv_fd_drop(&self->launcher);
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (self->jobs[i].pid > 0 && self->jobs[i].pipe != report)
            wv_fd_drop(&self->jobs[i].pipe);
}

static int work(struct janitor *self, const struct wv_role_request *req,
                struct wv_err *err)
{
    const char *name = req->u.template.name;
    char kind[8] = "tree";

    switch ((int)req->head.type) {
    case WV_ROLE_BUILD:
        if (req->u.template.kind == 1)
            memcpy(kind, "tar", 4);
        return wv_catalog_build(name, kind, req->u.template.source, err);
    case WV_ROLE_FORGET:
        return wv_catalog_forget(name, err);
    default:
        wv_sweep_others(&self->slots.owner, &self->slots.groups);
        return 0;
    }
}

/* req NULL: sweep. */
static int start_job(struct janitor *self, const struct wv_role_request *req,
                     struct wv_err *err)
{
    static const struct wv_role_request sweep = {0};
    struct job *job = NULL;
    int report[2];

    for (size_t i = 0; i < JOBS_MAX && job == NULL; i++)
        if (self->jobs[i].pid == 0)
            job = &self->jobs[i];
    if (job == NULL)
        return wv_fail(err, WV_ECAPACITY, "janitor", "%d long jobs are under way",
                       JOBS_MAX);
    if (pipe2(report, O_CLOEXEC) < 0)
        return wv_fail_errno(err, "janitor", "a pipe");
    *job =
        (struct job){.pipe = report[0], .head = req != NULL ? req->head : sweep.head};
    job->pid = fork();
    if (job->pid == 0) {
        struct wv_err said = {0};

        close(report[0]);
        if (req != NULL)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        isolate(self, report[1]);
        said.code = work(self, req != NULL ? req : &sweep, &said);
        wv_fd_write_all(report[1], &said, sizeof said);
        _exit(0);
    }
    close(report[1]);
    if (job->pid < 0) {
        job->pid = 0;
        close(report[0]);
        return wv_fail_errno(err, "janitor", "forking");
    }
    return 0;
}

static void end_job(struct janitor *self, struct job *job)
{
    struct wv_err said = {0};
    ssize_t n = read(job->pipe, &said, sizeof said);

    close(job->pipe);
    waitpid(job->pid, NULL, 0);
    job->pid = 0;
    if (n != (ssize_t)sizeof said)
        wv_fail(&said, WV_ELOST, "janitor", "the job died");
    if (job->head.type != 0)
        done(self, &job->head, &said);
}

/* --- requests ---------------------------------------------------------------- */

static void send_node(struct janitor *self, const struct wv_slot *slot,
                      const struct wv_err *why)
{
    struct wv_role_request out = {.head.type = WV_ROLE_NODE};
    struct wv_node node;
    long len;

    wv_node_probe(&node, &self->slots, slot, why);
    len = wv_node_pack(&node, out.u.node.facts, sizeof out.u.node.facts);
    if (len < 0)
        return;
    out.u.node.len = (uint32_t)len;
    reply(self, &out, UNTIL(node), NULL, 0);
}

static void make_slot(struct janitor *self, const struct wv_role_request *req)
{
    struct wv_role_request out = {
        .head = {.type = WV_ROLE_SLOTTED, .ticket = req->head.ticket}
    };
    struct wv_err err = {0};
    int fds[WV_FDS_MAX];
    size_t nfds = 0;
    int rc = wv_slot_make(&self->slots, &out.u.slot, fds, &nfds, &err);

    if (rc < 0)
        out.head.err = err;
    reply(self, &out, UNTIL(slot), fds, nfds);
    if (!self->probed)
        send_node(self, rc < 0 ? NULL : &out.u.slot, &err);
    self->probed = 1;
    for (size_t i = 0; i < nfds; i++)
        close(fds[i]);
}

static void read_usage(struct janitor *self, const struct wv_role_request *req)
{
    struct wv_role_request out = {
        .head = {.type = WV_ROLE_USED,
                 .ticket = req->head.ticket,
                 .number = req->head.number}
    };
    struct wv_slot_record *record = wv_slot_find(&self->slots, req->head.number);

    if (record != NULL)
        wv_counters_read(&record->counters, &out.u.usage);
    else
        wv_fail(&out.head.err, WV_ENOT_FOUND, "usage", "no such slot");
    reply(self, &out, UNTIL(usage), NULL, 0);
}

struct listing {
    struct janitor *self;
    uint64_t ticket;
};

static void list_one(void *user, const char *name, uint32_t built)
{
    struct listing *listing = user;
    struct wv_role_request out = {
        .head = {.type = WV_ROLE_TEMPLATES, .ticket = listing->ticket, .flag = built}
    };

    memcpy(out.u.template.name, name, strlen(name));
    reply(listing->self, &out, UNTIL(template), NULL, 0);
}

static int list_templates(struct janitor *self, const struct wv_role_request *req,
                          struct wv_err *err)
{
    struct listing listing = {self, req->head.ticket};
    int rc = wv_catalog_list(list_one, &listing, err);

    if (rc == 0)
        done(self, &req->head, err);
    return rc;
}

static void handle(struct janitor *self, const struct wv_role_request *req)
{
    struct wv_err err = {0};
    int rc = 0;

    switch ((int)req->head.type) {
    case WV_ROLE_SLOT:
        make_slot(self, req);
        break;
    case WV_ROLE_RELEASE:
        wv_slot_release(&self->slots, req->head.number);
        break;
    case WV_ROLE_USAGE:
        read_usage(self, req);
        break;
    case WV_ROLE_PAUSE:
        rc = wv_cgroup_freeze(&self->slots.groups, req->head.number,
                              req->head.flag != 0, &err);
        if (rc == 0)
            done(self, &req->head, &err);
        break;
    case WV_ROLE_TEMPLATES:
        rc = list_templates(self, req, &err);
        break;
    case WV_ROLE_BUILD:
    case WV_ROLE_FORGET:
        rc = self->slots.ids > 0 ? wv_fail(&err, WV_EUNSUPPORTED, "template",
                                           "only root keeps templates")
                                 : start_job(self, req, &err);
        break;
    default:
        rc = wv_fail(&err, WV_EPROTOCOL, "janitor", "an unknown request");
    }
    if (rc < 0)
        done(self, &req->head, &err);
}

/* --- the loop ---------------------------------------------------------------- */

/* 1: go on; 0: the supervisor is gone. */
static int take_request(struct janitor *self)
{
    struct wv_role_request req;
    size_t nfds = 0;
    ssize_t n = wv_fd_recv(self->sock, &req, sizeof req, NULL, &nfds, NULL);

    if (n == 0 || n == WV_ELOST)
        return 0;
    if (n < (ssize_t)sizeof req.head)
        return 1;
    memset((char *)&req + n, 0, sizeof req - (size_t)n);
    handle(self, &req);
    return 1;
}

static int wait_ms(const struct janitor *self)
{
    uint64_t now = wv_boot_ms();

    if (self->slots.ending > 0)
        return RETRY_MS;
    return now >= self->next_sweep_ms ? 0 : (int)(self->next_sweep_ms - now);
}

static void serve(struct janitor *self)
{
    for (;;) {
        struct pollfd polled[1 + JOBS_MAX] = {
            {.fd = self->sock, .events = POLLIN}
        };

        for (size_t i = 0; i < JOBS_MAX; i++)
            polled[1 + i] =
                (struct pollfd){.fd = self->jobs[i].pid > 0 ? self->jobs[i].pipe : -1,
                                .events = POLLIN};
        if (poll(polled, 1 + JOBS_MAX, wait_ms(self)) < 0)
            continue;
        if (polled[0].revents != 0 && !take_request(self))
            return;
        for (size_t i = 0; i < JOBS_MAX; i++)
            if (polled[1 + i].revents != 0)
                end_job(self, &self->jobs[i]);
        if (self->slots.ending > 0)
            wv_slots_retry(&self->slots);
        if (wv_boot_ms() >= self->next_sweep_ms) {
            start_job(self, NULL, NULL);
            self->next_sweep_ms = wv_boot_ms() + SWEEP_EVERY_MS;
        }
    }
}

/* Unfinished unpacking ends with us; then the launcher, and with it every sandbox. */
static void see_off(struct janitor *self)
{
    struct pollfd polled = {.fd = self->launcher, .events = POLLIN};

    for (size_t i = 0; i < JOBS_MAX; i++)
        if (self->jobs[i].pid > 0 && self->jobs[i].head.type != 0)
            kill(self->jobs[i].pid, SIGKILL);
    if (self->launcher < 0)
        return;
    syscall(SYS_pidfd_send_signal, self->launcher, SIGKILL, NULL, 0);
    while (poll(&polled, 1, LAUNCHER_PATIENCE_MS) < 0 && errno == EINTR)
        ;
}

int wv_janitor_main(const struct wv_janitor_start *start)
{
    struct janitor self = {.sock = start->sock, .launcher = start->launcher};
    struct wv_err err;

    prctl(PR_SET_NAME, "wovyr-janitor");
    wv_owner_leave(start->owner);
    if (start->user >= 0 && setns(start->user, CLONE_NEWUSER) < 0)
        return 1;
    if (start->ids == 0 && wv_confine_caps(KEEP, &err) < 0)
        return 1;
    umask(077);
    wv_slots_init(&self.slots, start->owner, start->ids);
    self.next_sweep_ms = wv_boot_ms();
    serve(&self);
    see_off(&self);
    wv_sweep_own(&self.slots.owner, &self.slots.groups);
    return 0;
}
