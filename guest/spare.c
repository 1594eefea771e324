/* spare.c - exec parents, seen from the agent
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/parent.h"
#include "guest/process.h"

static void hang_up(struct wv_parent *parent)
{
    wv_watch_set(parent->agent, &parent->watch, 0);
    wv_fd_drop(&parent->watch.fd);
}

static struct wv_parent *new_parent(struct wv_agent *agent);

/* The heir of parent. It may already be dead, killed by the guest. */
static void take_heir(struct wv_parent *parent, pid_t pid, int sock)
{
    WV_AUTO(wv_fd_drop) int owned = sock;
    struct wv_agent *agent = parent->agent;
    struct wv_parent *heir;

    if (agent->maker == parent)
        agent->maker = NULL;
    if (sock < 0 || agent->spare != NULL || (heir = new_parent(agent)) == NULL)
        return;
    if (wv_child_adopt(agent, &heir->child, pid) < 0) {
        free(heir);
        return;
    }
    heir->watch.fd = wv_fd_take(&owned);
    agent->spare = heir;
}

static void take_reports(struct wv_parent *parent)
{
    struct wv_report report;

    while (parent->watch.fd >= 0) {
        size_t nfds = 1;
        int fd = -1;
        ssize_t n =
            wv_fd_recv(parent->watch.fd, &report, sizeof report, &fd, &nfds, NULL);

        if (n == WV_EAGAIN)
            return;
        if (n != (ssize_t)sizeof report)
            hang_up(parent);
        else if (report.what == WV_REPORT_SPARE)
            take_heir(parent, report.pid, fd);
        else if (parent->process != NULL)
            wv_process_report(parent->process, &report);
    }
}

void wv_parent_news(struct wv_agent *agent)
{
    if (agent->maker != NULL)
        take_reports(agent->maker);
}

static void ready(struct wv_watch *watch, uint32_t events)
{
    (void)events;
    take_reports(WV_OUTER(watch, struct wv_parent, watch));
}

static void ended(struct wv_child *child, int status, const struct rusage *usage)
{
    struct wv_parent *parent = WV_OUTER(child, struct wv_parent, child);
    struct wv_agent *agent = parent->agent;

    take_reports(parent);
    hang_up(parent);
    if (agent->spare == parent)
        agent->spare = NULL;
    if (agent->maker == parent)
        agent->maker = NULL;
    /* An end of its own will means that it had no child left. */
    if (!WIFEXITED(status))
        wv_agent_sweep(agent);
    if (parent->process != NULL)
        wv_process_orphan(parent->process, usage);
    free(parent);
}

static struct wv_parent *new_parent(struct wv_agent *agent)
{
    struct wv_parent *parent = calloc(1, sizeof *parent);

    if (parent == NULL)
        return NULL;
    parent->agent = agent;
    parent->child.ended = ended;
    parent->watch.ready = ready;
    parent->watch.fd = -1;
    return parent;
}

int wv_parent_make(struct wv_agent *agent, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int ours = -1;
    WV_AUTO(wv_fd_drop) int theirs = -1;
    struct wv_parent *parent;
    pid_t pid;

    if (wv_parent_pair(&ours, &theirs) < 0)
        return wv_fail_errno(err, "exec parent", "making a socket pair");
    parent = new_parent(agent);
    if (parent == NULL)
        return wv_fail_errno(err, "exec parent", "allocating");
    pid = wv_child_fork(agent, &parent->child, err);
    if (pid == 0)
        wv_parent_main(theirs, agent->works, agent->nworks);
    if (pid < 0) {
        free(parent);
        return (int)pid;
    }
    parent->watch.fd = wv_fd_take(&ours);
    agent->spare = parent;
    return 0;
}

struct wv_parent *wv_parent_start(struct wv_agent *agent, struct wv_process *process,
                                  struct wv_order *order, size_t len, const int *fds,
                                  size_t nfds, struct wv_err *err)
{
    /* The guest may have killed the spare: see that first, and in the end try twice. */
    wv_child_reap(agent);
    for (int attempt = 0; attempt < 2; attempt++) {
        struct wv_parent *parent;
        ssize_t rc;

        if (agent->spare == NULL && wv_parent_make(agent, err) < 0)
            return NULL;
        parent = agent->spare;
        agent->spare = NULL;
        order->heir = agent->maker == NULL;
        rc = wv_fd_send(parent->watch.fd, order, len, fds, nfds, err);
        if (rc >= 0) {
            parent->process = process;
            if (order->heir)
                agent->maker = parent;
            wv_watch_set(agent, &parent->watch, EPOLLIN);
            return parent;
        }
        hang_up(parent); /* which ends it, should it live */
    }
    return NULL;
}

void wv_parent_order(struct wv_parent *parent, const struct wv_order *order)
{
    if (parent->watch.fd >= 0)
        send(parent->watch.fd, order, sizeof *order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void wv_parent_release(struct wv_parent *parent)
{
    parent->process = NULL;
    hang_up(parent);
}
