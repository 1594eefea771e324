/* process.c - the life of a process record
 *
 * SPDX-License-Identifier: MIT */
#include "guest/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "guest/follow.h"

#define DRAIN_US 100000u    /* for pipes that someone holds open behind the leader */
#define PARENT_US 100000u   /* for a parent to kill its tree */
#define GIVE_UP_US 1000000u /* then EXIT does not wait for the tree either */
#define KEEP_MS 3600000u

struct wv_process *wv_process_find(struct wv_agent *agent, uint32_t id)
{
    struct wv_process *p = agent->processes;

    while (p != NULL && p->id != id)
        p = p->next;
    return p;
}

void wv_process_remove(struct wv_process *p)
{
    struct wv_process **link = &p->agent->processes;

    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    p->agent->nprocesses--;
    wv_timer_set(p->agent, &p->timer, 0);
    wv_output_close(&p->out[0]);
    wv_output_close(&p->out[1]);
    wv_input_close(p, 0);
    wv_log_fini(&p->log);
    if (p->parent != NULL)
        wv_parent_release(p->parent);
    free(p->key);
    free(p);
}

static int is_over(const struct wv_process *p)
{
    return p->state == WV_PROCESS_ENDED && p->parent == NULL && p->followers == NULL;
}

/* Forget the oldest records that are over until at most `most` of those are left. */
static void forget_oldest(struct wv_agent *agent, unsigned most)
{
    unsigned n = 0;

    for (struct wv_process *p = agent->processes; p != NULL; p = p->next)
        n += (unsigned)is_over(p);
    for (struct wv_process *p = agent->processes, *next; p != NULL && n > most;
         p = next) {
        next = p->next;
        if (!is_over(p))
            continue;
        wv_process_remove(p);
        n--;
    }
}

static void tick(struct wv_timer *timer, uint64_t now);

struct wv_process *wv_process_add(struct wv_agent *agent, struct wv_err *err)
{
    struct wv_process **link = &agent->processes;
    struct wv_process *p;

    forget_oldest(agent, agent->nprocesses < WV_PROCESSES_MAX ? WV_ENDED_MAX : 0);
    if (agent->nprocesses >= WV_PROCESSES_MAX) {
        wv_fail(err, WV_ELIMIT, "start", "%u processes are running", agent->nprocesses);
        return NULL;
    }
    p = calloc(1, sizeof *p);
    if (p == NULL) {
        wv_fail_errno(err, "start", "allocating");
        return NULL;
    }
    p->agent = agent;
    p->id = ++agent->last_id;
    p->timer.fire = tick;
    p->out[0].watch.fd = p->out[1].watch.fd = -1;
    wv_input_init(p, -1);
    wv_log_init(&p->log, 0, 0, &agent->log_bytes, WV_LOG_TOTAL);
    while (*link != NULL)
        link = &(*link)->next;
    *link = p;
    agent->nprocesses++;
    return p;
}

/* --- deadlines ------------------------------------------------------------------ */

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static void set_timer(struct wv_process *p)
{
    uint64_t at = sooner(p->wall_at, p->parent_at);

    at = sooner(at, p->drain_at);
    at = sooner(at, p->give_up_at);
    wv_timer_set(p->agent, &p->timer, sooner(at, p->forget_at));
}

/* A deadline that is set and past; it is taken back. */
static int passed(uint64_t *at, uint64_t now)
{
    if (*at == 0 || *at > now)
        return 0;
    *at = 0;
    return 1;
}

static void tick(struct wv_timer *timer, uint64_t now)
{
    struct wv_process *p = WV_OUTER(timer, struct wv_process, timer);

    if (passed(&p->forget_at, now)) {
        if (is_over(p)) {
            wv_process_remove(p);
            return;
        }
        p->forget_at = now + 1000000u;
    }
    if (passed(&p->wall_at, now))
        wv_process_kill(p, WV_CAUSE_TIMEOUT, WV_REASON_WALL, 0);
    if (passed(&p->parent_at, now) && p->parent != NULL && !p->tree_gone)
        kill(p->parent->child.pid, SIGKILL);
    if (passed(&p->drain_at, now))
        p->grace_over = 1;
    if (passed(&p->give_up_at, now))
        p->tree_gone = 1;
    wv_process_check(p);
}

/* --- the end -------------------------------------------------------------------- */

static int was_read(const struct wv_process *p)
{
    int open = 0;

    for (int i = 0; i < 2; i++) {
        const struct wv_output *out = &p->out[i];

        if (out->watch.fd < 0)
            continue;
        open = 1;
        if (p->log.count[out->source] < out->must)
            return 0;
    }
    /* What the dead wrote to a terminal may still be on its way through it. */
    return !open || p->grace_over || (p->all_dead && (p->flags & WV_START_PTY) == 0);
}

/* How the leader ended, where nothing of ours decided it before. */
static void judge(struct wv_process *p)
{
    uint32_t status = p->exit.status;
    int signal = status & 0x7f;

    if (p->exit.cause == 0 && p->cpu_ms > 0 && p->exit.cpu_us >= p->cpu_ms * 1000u &&
        (signal == SIGXCPU || signal == SIGKILL)) {
        p->exit.cause = WV_CAUSE_TIMEOUT;
        p->exit.reason = WV_REASON_CPU_TIME;
        if (signal == SIGKILL && p->exit.strays > 0)
            p->exit.strays--;
    }
    if (p->exit.cause == 0)
        p->exit.cause = signal == 0 ? WV_CAUSE_EXITED : WV_CAUSE_SIGNALED;
    if (p->exit.cause == WV_CAUSE_TIMEOUT)
        p->exit.limits |=
            p->exit.reason == WV_REASON_WALL ? WV_HIT_TIMEOUT : WV_HIT_CPU_TIME;
}

static int disk_is_full(void)
{
    struct statfs fs;

    if (statfs("/workspace", &fs) < 0)
        return 0;
    return (fs.f_blocks > 0 && fs.f_bavail == 0) || (fs.f_files > 0 && fs.f_ffree == 0);
}

static void finish(struct wv_process *p)
{
    judge(p);
    p->state = WV_PROCESS_ENDED;
    p->exit.drained = (p->out[0].watch.fd < 0 && p->out[1].watch.fd < 0) ||
                      (p->all_dead && (p->flags & WV_START_PTY) == 0);
    p->exit.out_bytes = p->log.count[WV_SOURCE_STDOUT] + p->log.count[WV_SOURCE_PTY];
    p->exit.err_bytes = p->log.count[WV_SOURCE_STDERR];
    if (disk_is_full())
        p->exit.limits |= WV_HIT_DISK;
    p->wall_at = 0;
    p->forget_at =
        wv_now_us() + (uint64_t)(p->keep_ms > 0 ? p->keep_ms : KEEP_MS) * 1000u;
    /* Nobody can ask for it again: its id went to the one stream that owns it. */
    if (p->keep_ms == 0 && (p->flags & WV_START_OWNED) != 0 && p->key[0] == '\0')
        p->forget_at = wv_now_us();
    wv_input_close(p, 0);
    wv_follow_ended(p);
}

void wv_process_check(struct wv_process *p)
{
    if (p->state == WV_PROCESS_RUNNING && p->leader_ended && was_read(p) &&
        (!p->killing || p->tree_gone))
        finish(p);
    set_timer(p);
}

void wv_process_kill(struct wv_process *p, uint8_t cause, uint8_t reason,
                     uint32_t grace_ms)
{
    struct wv_order order = {.kind = WV_ORDER_KILL, .number = grace_ms};
    uint64_t now = wv_now_us(), end = now + (uint64_t)grace_ms * 1000u;

    if (!p->leader_ended && p->exit.cause == 0) {
        p->exit.cause = cause;
        p->exit.reason = reason;
    }
    if (p->tree_gone || p->parent == NULL)
        return;
    p->killing = 1;
    wv_parent_order(p->parent, &order);
    p->parent_at = sooner(p->parent_at, end + PARENT_US);
    p->give_up_at = sooner(p->give_up_at, end + GIVE_UP_US);
    set_timer(p);
}

/* --- from the parent ------------------------------------------------------------ */

static void failed(struct wv_process *p, const struct wv_report *report)
{
    struct wv_err err;
    const char *field = report->field, *reason = NULL;

    errno = report->sys;
    if (strcmp(field, "cwd") == 0) {
        wv_fail_errno(&err, "start", "cannot enter the directory '%.180s'", p->cwd);
    } else if (strcmp(field, "interpreter") == 0) {
        wv_fail_errno(&err, "start",
                      "the interpreter or loader of the program is missing");
        reason = field;
        field = "cmd";
    } else if (strcmp(field, "cmd") == 0) {
        struct wv_str name = {NULL, 0};
        struct wv_strv argv = {(const char *)p->argv, p->argv_len, p->argv_count};

        wv_strv_next(&argv, &name);
        wv_fail_errno(&err, "start", "cannot run '%.*s'",
                      name.len > 180 ? 180 : (int)name.len,
                      name.len > 0 ? name.ptr : "");
    } else {
        wv_fail_errno(&err, "start", "cannot set up the process (%s)", field);
        if (strcmp(field, "pids") == 0)
            err.code = WV_ELIMIT;
    }
    snprintf(err.field, sizeof err.field, "%s", field);
    wv_follow_failed(p, &err, reason);
    wv_process_remove(p);
}

static void leader_ended(struct wv_process *p, int status)
{
    p->leader_ended = 1;
    p->exit.status = (uint32_t)status;
    p->exit.wall_us = wv_now_us() - p->started_us;
    p->wall_at = 0;
    p->drain_at = wv_now_us() + DRAIN_US;
    wv_output_mark(p);
}

void wv_process_report(struct wv_process *p, const struct wv_report *report)
{
    if ((report->what & WV_REPORT_FAILED) != 0) {
        failed(p, report);
        return;
    }
    if ((report->what & WV_REPORT_STARTED) != 0) {
        p->pid = report->pid;
        p->state = WV_PROCESS_RUNNING;
        wv_follow_started(p);
    }
    if (p->state != WV_PROCESS_ENDED) {
        p->exit.cpu_us = report->cpu_us;
        p->exit.memory_peak = (uint64_t)report->peak_kib * 1024u;
        p->exit.strays = report->strays;
    }
    if ((report->what & WV_REPORT_CPU) != 0 && !p->leader_ended)
        wv_process_kill(p, WV_CAUSE_TIMEOUT, WV_REASON_CPU_TIME, 0);
    if ((report->what & WV_REPORT_EMPTY) != 0)
        p->tree_gone = p->all_dead = 1;
    if ((report->what & WV_REPORT_LEADER) != 0)
        leader_ended(p, report->status);
    wv_process_check(p);
}

/* Its parent was reaped. Was it killed, then its tree became strangers, who are dying.
 */
void wv_process_orphan(struct wv_process *p, const struct rusage *usage)
{
    uint64_t cpu_us =
        (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000u +
        (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
    struct wv_err err;

    p->parent = NULL;
    p->parent_at = 0;
    if (p->state == WV_PROCESS_STARTING) {
        wv_fail(&err, WV_EFAILED, "start",
                "the guest killed the process while it started");
        wv_follow_failed(p, &err, "guest");
        wv_process_remove(p);
        return;
    }
    if (!p->leader_ended) {
        p->killing = 1;
        p->give_up_at = sooner(p->give_up_at, wv_now_us() + GIVE_UP_US);
        if (p->exit.cause == 0) {
            p->exit.cause = WV_CAUSE_KILLED;
            p->exit.reason = WV_REASON_GUEST;
        }
        p->exit.cpu_us = cpu_us;
        leader_ended(p, SIGKILL);
    }
    if (p->agent->sweep_us == 0)
        p->tree_gone = p->all_dead = 1;
    wv_process_check(p);
}

void wv_process_swept(struct wv_agent *agent)
{
    for (struct wv_process *p = agent->processes, *next; p != NULL; p = next) {
        next = p->next;
        if (p->parent != NULL || p->all_dead)
            continue;
        p->tree_gone = p->all_dead = 1;
        wv_process_check(p);
    }
}

/* The oldest logs nobody reads any more go first. */
void wv_process_make_room(struct wv_agent *agent)
{
    for (struct wv_process *p = agent->processes; p != NULL; p = p->next) {
        if (!is_over(p) || (p->log.head.cap == 0 && p->log.tail.cap == 0))
            continue;
        wv_log_fini(&p->log);
        if (agent->log_bytes < WV_LOG_TOTAL / 4u * 3u)
            return;
    }
}
