/* agent.h - PID 1 of a sandbox: one loop and everything it holds
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_AGENT_H
#define WV_GUEST_AGENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

#define WV_LIFELINE 3  /* the supervisor's end hung up: we are over */
#define WV_WORKS_MAX 4 /* cgroup descriptors that follow the lifeline */
#define WV_CONNS_MAX 64
#define WV_BATCH 64            /* events taken from the kernel at once */
#define WV_LOG_TOTAL 16777216u /* bytes of all logs of the session */

/* The struct that `member` is part of. */
#define WV_OUTER(ptr, type, member)                                                    \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A descriptor in the loop. ready() may unwatch and free anything, itself included. */
struct wv_watch {
    void (*ready)(struct wv_watch *watch, uint32_t events);
    int fd;          /* not owned */
    uint32_t events; /* what is asked for; 0: not in the loop */
};

/* One moment, in wv_now_us() time. */
struct wv_timer {
    struct wv_timer *next;
    void (*fire)(struct wv_timer *timer, uint64_t now);
    uint64_t at; /* 0: not set */
};

/* A process that this one forked. Whatever else turns up as a child is a stranger: it
 * lost its parent to a kill, and dies. */
struct wv_child {
    struct wv_child *next;
    pid_t pid;
    /* It was reaped and is no longer in the list; may free itself. */
    void (*ended)(struct wv_child *child, int status, const struct rusage *usage);
};

struct wv_agent {
    int epoll;
    struct wv_watch lifeline, signals;
    struct epoll_event batch[WV_BATCH];
    int nbatch, at_batch;
    struct wv_timer *timers; /* soonest first */
    struct wv_child *children;

    struct wv_conn *conns;
    unsigned nconns;
    struct wv_process *processes; /* oldest first */
    unsigned nprocesses;
    uint32_t last_id; /* of a process: p1, p2, ... */
    size_t log_bytes;

    struct wv_parent *spare; /* an exec parent that waits for its command */
    struct wv_parent *maker; /* the parent that is to send the next one */
    uint64_t spare_after;    /* a fork failed: not before this */
    int works[WV_WORKS_MAX]; /* cgroups that exec parents join */
    int nworks;

    struct wv_timer sweep; /* the next pass over strangers */
    uint32_t sweep_us;     /* between passes; 0: no stranger is known */
};

/* Ask for events (EPOLLIN, EPOLLOUT; 0 leaves the loop). WV_ELIMIT and the like on
 * failure. */
int wv_watch_set(struct wv_agent *agent, struct wv_watch *watch, uint32_t events);

void wv_timer_set(struct wv_agent *agent, struct wv_timer *timer, uint64_t at);

/* Fork. In the child it returns 0 and the caller must leave by _exit or exec; in the
 * agent the child is in the list and its pid is returned. Negative: WV_ELIMIT (field
 * "pids"). */
pid_t wv_child_fork(struct wv_agent *agent, struct wv_child *child, struct wv_err *err);

/* The same for a child that another process made for us (CLONE_PARENT). Negative when
 * it is not, or no longer, a child. */
int wv_child_adopt(struct wv_agent *agent, struct wv_child *child, pid_t pid);

/* Reap what has ended. */
void wv_child_reap(struct wv_agent *agent);

/* Begin killing strangers, in passes until none is left. */
void wv_agent_sweep(struct wv_agent *agent);

#endif
