/* parent.h - exec parents: one small process between the agent and each command
 *
 * Theory of operation. An exec parent is forked from the agent, joins the session's
 * `work` cgroups, becomes a subreaper and waits. One is kept ready (the spare), so that
 * its making is not on the path of an exec. Its START order carries what to run and the
 * descriptors of its stdio. From then on everything that the command leaves behind
 * becomes a child of the parent, which reports when the leader ended and when the last
 * descendant did, and kills the whole tree when told to; then it exits. A guest that
 * kills its parent turns its own processes into strangers (agent.h).
 *
 * The next spare is forked by the parent that has just started its command, as a child
 * of the agent (CLONE_PARENT): the agent's own pages are then not copied again with
 * every exec.
 *
 *   agent --START(order, stdio)--> parent --STARTED or FAILED--> agent
 *   agent --SIGNAL, KILL--> parent --SPARE(socket), CPU, LEADER, EMPTY--> agent
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_PARENT_H
#define WV_GUEST_PARENT_H

#include "guest/agent.h"
#include "guest/user.h"

#define WV_ORDER_MAX 425984u /* bytes: a START message with the defaults added */

enum wv_order_kind { WV_ORDER_START = 1, WV_ORDER_SIGNAL, WV_ORDER_KILL };

/* START is followed by strings, each with its NUL: cwd, argc of argv, envc of env. Its
 * descriptors are those of stdin, stdout, stderr that have their bit in fds, in order.
 */
struct wv_order {
    uint32_t kind;
    uint32_t number; /* SIGNAL: which; KILL: milliseconds between TERM and KILL */
    uint32_t to;     /* SIGNAL: enum wv_to */
    uint32_t flags;  /* WV_START_* */
    uint32_t fds;
    uint32_t umask, argc, envc;
    uint32_t heir; /* 1: make the next spare */
    int32_t nice;
    uint64_t cpu_ms;
    uid_t uid;
    gid_t gid;
    int32_t ngroups;
    gid_t groups[WV_GROUPS_MAX];
};

enum wv_report_what {
    WV_REPORT_STARTED = 1,
    WV_REPORT_FAILED = 2, /* sys, field */
    WV_REPORT_CPU = 4,    /* cpu_ms is used up */
    WV_REPORT_LEADER = 8, /* status */
    WV_REPORT_EMPTY = 16, /* the parent has no child left, and exits */
    WV_REPORT_SPARE =
        32, /* pid of the heir, with its socket; no socket: none was made */
};

/* The counts are of all that was reaped so far. */
struct wv_report {
    uint32_t what;
    int32_t pid, status, sys; /* pid: of the leader */
    uint32_t strays;
    uint32_t peak_kib;
    uint64_t cpu_us;
    char field[12];
};

struct wv_process;

struct wv_parent {
    struct wv_child child;
    struct wv_watch watch; /* its socket, owned */
    struct wv_agent *agent;
    struct wv_process *process; /* NULL: a spare */
};

/* Make one, in agent->spare. */
int wv_parent_make(struct wv_agent *agent, struct wv_err *err);

/* Hand process over to the spare (made now if there is none). */
struct wv_parent *wv_parent_start(struct wv_agent *agent, struct wv_process *process,
                                  struct wv_order *order, size_t len, const int *fds,
                                  size_t nfds, struct wv_err *err);

/* Take what the maker of the next spare has to say: a pid may be that of the heir. */
void wv_parent_news(struct wv_agent *agent);

/* Orders that follow. A parent that does not take them is dead or stopped by the guest.
 */
void wv_parent_order(struct wv_parent *parent, const struct wv_order *order);

/* Its process is forgotten: whatever it still has is killed. */
void wv_parent_release(struct wv_parent *parent);

/* The two ends of the socket between an agent and a parent. */
int wv_parent_pair(int *agents, int *parents);

/* The life of a parent, behind the fork. */
_Noreturn void wv_parent_main(int sock, const int *works, int nworks);

#endif
