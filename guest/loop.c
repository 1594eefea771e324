/* loop.c - watches, timers and children of the agent
 *
 * SPDX-License-Identifier: MIT */
#include "guest/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "guest/process.h"
#include "guest/tree.h"

#define SWEEP_FIRST_US 1000u
#define SWEEP_LAST_US 100000u

/* Events of this batch that were not handled yet must not reach a watch that left. */
static void forget_events(struct wv_agent *agent, const struct wv_watch *watch)
{
    for (int i = agent->at_batch; i < agent->nbatch; i++)
        if (agent->batch[i].data.ptr == watch)
            agent->batch[i].data.ptr = NULL;
}

int wv_watch_set(struct wv_agent *agent, struct wv_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int op = EPOLL_CTL_MOD;

    if (watch->events == events)
        return 0;
    if (events == 0) {
        /* Explicitly: a fork of ours may still hold the description for a moment. */
        op = EPOLL_CTL_DEL;
        forget_events(agent, watch);
    } else if (watch->events == 0) {
        op = EPOLL_CTL_ADD;
    }
    if (epoll_ctl(agent->epoll, op, watch->fd, &event) < 0)
        return wv_fail_errno(NULL, "watch", "watching a descriptor");
    watch->events = events;
    return 0;
}

void wv_timer_set(struct wv_agent *agent, struct wv_timer *timer, uint64_t at)
{
    struct wv_timer **link = &agent->timers;

    if (timer->at == at)
        return;
    if (timer->at != 0) {
        while (*link != timer)
            link = &(*link)->next;
        *link = timer->next;
    }
    timer->at = at;
    if (at == 0)
        return;
    for (link = &agent->timers; *link != NULL && (*link)->at <= at;)
        link = &(*link)->next;
    timer->next = *link;
    *link = timer;
}

pid_t wv_child_fork(struct wv_agent *agent, struct wv_child *child, struct wv_err *err)
{
    pid_t pid = fork();

    if (pid == 0)
        return 0;
    if (pid < 0) {
        int full = errno == EAGAIN;
        int rc = wv_fail_errno(err, "fork", "starting a process");

        if (!full || err == NULL)
            return full ? WV_ELIMIT : rc;
        snprintf(err->field, sizeof err->field, "pids");
        return err->code = WV_ELIMIT;
    }
    child->pid = pid;
    child->next = agent->children;
    agent->children = child;
    return pid;
}

int wv_child_adopt(struct wv_agent *agent, struct wv_child *child, pid_t pid)
{
    siginfo_t info;

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return wv_fail_errno(NULL, "child", "process %d is not a child", pid);
    child->pid = pid;
    child->next = agent->children;
    agent->children = child;
    return 0;
}

static struct wv_child *take_child(struct wv_agent *agent, pid_t pid)
{
    for (struct wv_child **link = &agent->children; *link != NULL;
         link = &(*link)->next) {
        struct wv_child *child = *link;

        if (child->pid != pid)
            continue;
        *link = child->next;
        return child;
    }
    return NULL;
}

void wv_child_reap(struct wv_agent *agent)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage)) > 0) {
        struct wv_child *child;

        if (WIFSTOPPED(status)) {
            /* Only a guest stops one of ours; a stopped stranger dies in the sweep. */
            kill(pid, SIGCONT);
            continue;
        }
        child = take_child(agent, pid);
        if (child == NULL) {
            wv_parent_news(agent);
            child = take_child(agent, pid);
        }
        if (child != NULL)
            child->ended(child, status, &usage);
        else
            wv_agent_sweep(agent);
    }
}

static int is_child(void *arg, pid_t pid)
{
    struct wv_agent *agent = arg;

    for (struct wv_child *child = agent->children; child != NULL; child = child->next)
        if (child->pid == pid)
            return 1;
    return 0;
}

static void sweep_pass(struct wv_timer *timer, uint64_t now)
{
    struct wv_agent *agent = WV_OUTER(timer, struct wv_agent, sweep);
    struct wv_tree_count count;

    wv_child_reap(agent);
    wv_parent_news(agent);
    count = wv_tree_strangers(is_child, agent);
    if (count.members == 0) {
        agent->sweep_us = 0;
        wv_process_swept(agent);
        return;
    }
    /* What cannot be reaped yet (its tracer still looks at it) is not worth a hot loop.
     */
    if (count.alive > 0)
        agent->sweep_us = SWEEP_FIRST_US;
    else if (agent->sweep_us < SWEEP_LAST_US)
        agent->sweep_us *= 2;
    wv_timer_set(agent, &agent->sweep, now + agent->sweep_us);
}

void wv_agent_sweep(struct wv_agent *agent)
{
    if (agent->sweep_us == SWEEP_FIRST_US)
        return;
    agent->sweep_us = SWEEP_FIRST_US;
    agent->sweep.fire = sweep_pass;
    wv_timer_set(agent, &agent->sweep, wv_now_us());
}
