/* main.c - the agent: PID 1 inside a sandbox
 *
 * Theory of operation. The agent is all that the host talks to. It runs with what the
 * guest may have at most, behind the same seccomp filter, and believes nothing the
 * guest shows it; it never waits on anything that a guest can hold up. It starts
 * nothing before it has locked itself down, because what it forks inherits that.
 * Connections reach it over the lifeline, each as a descriptor with one byte; when the
 * lifeline hangs up, the agent exits and the kernel kills everything in its pid
 * namespace.
 *
 *   host ==channel==> agent --socket pair--> exec parent --vfork--> command
 *                       ^ pipes or terminal ______________________/
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guest/conn.h"
#include "guest/lockdown.h"
#include "guest/parent.h"

#define SPARE_RETRY_US 100000u

/* Exit statuses, for the launcher's report. */
enum { OVER = 0, NO_LIFELINE = 2, NO_LOCKDOWN = 3, NO_LOOP = 4 };

static void lifeline_ready(struct wv_watch *watch, uint32_t events)
{
    struct wv_agent *agent = WV_OUTER(watch, struct wv_agent, lifeline);

    (void)events;
    for (;;) {
        size_t nfds = 1;
        int fd = -1;
        char word;
        ssize_t n = wv_fd_recv(WV_LIFELINE, &word, 1, &fd, &nfds, NULL);

        if (n == WV_EAGAIN || n == WV_ECAPACITY)
            return;
        if (n <= 0)
            _exit(OVER);
        if (nfds == 1)
            wv_conn_open(agent, fd, NULL);
    }
}

static void signals_ready(struct wv_watch *watch, uint32_t events)
{
    struct wv_agent *agent = WV_OUTER(watch, struct wv_agent, signals);
    struct signalfd_siginfo info;

    (void)events;
    while (read(watch->fd, &info, sizeof info) > 0)
        ;
    wv_child_reap(agent);
}

static int is_hung_up(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    return poll(&poller, 1, 0) < 0 ||
           (poller.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* The descriptors that came with the lifeline, and nothing ignored, open or left over.
 */
static void take_over(struct wv_agent *agent)
{
    sigset_t all;

    for (int fd = WV_LIFELINE + 1; agent->nworks < WV_WORKS_MAX; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            break;
        agent->works[agent->nworks++] = fd;
    }
    fcntl(WV_LIFELINE, F_SETFD, FD_CLOEXEC);
    wv_fd_nonblock(WV_LIFELINE);
    umask(022);
    (void)!chdir("/");
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

static int make_loop(struct wv_agent *agent)
{
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    agent->epoll = epoll_create1(EPOLL_CLOEXEC);
    agent->lifeline = (struct wv_watch){.ready = lifeline_ready, .fd = WV_LIFELINE};
    agent->signals = (struct wv_watch){
        .ready = signals_ready,
        .fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK),
    };
    if (agent->epoll < 0 || agent->signals.fd < 0 ||
        wv_watch_set(agent, &agent->lifeline, EPOLLIN) < 0)
        return -1;
    return wv_watch_set(agent, &agent->signals, EPOLLIN);
}

static void fire_timers(struct wv_agent *agent)
{
    uint64_t now = wv_now_us();

    while (agent->timers != NULL && agent->timers->at <= now) {
        struct wv_timer *timer = agent->timers;

        agent->timers = timer->next;
        timer->at = 0;
        timer->fire(timer, now);
    }
}

static int time_left_ms(const struct wv_agent *agent)
{
    uint64_t now, left;

    if (agent->timers == NULL)
        return -1;
    now = wv_now_us();
    if (agent->timers->at <= now)
        return 0;
    left = (agent->timers->at - now + 999) / 1000;
    return left > 60000 ? 60000 : (int)left;
}

static int wants_spare(const struct wv_agent *agent)
{
    return agent->spare == NULL && agent->maker == NULL &&
           wv_now_us() >= agent->spare_after;
}

static _Noreturn void serve(struct wv_agent *agent)
{
    int busy = 0;

    for (;;) {
        int idle = !busy && wants_spare(agent);
        int n = epoll_wait(agent->epoll, agent->batch, WV_BATCH,
                           busy || idle ? 0 : time_left_ms(agent));

        agent->nbatch = n > 0 ? n : 0;
        for (agent->at_batch = 0; agent->at_batch < agent->nbatch;) {
            struct epoll_event *event = &agent->batch[agent->at_batch++];
            struct wv_watch *watch = event->data.ptr;

            if (watch != NULL)
                watch->ready(watch, event->events);
        }
        agent->nbatch = 0;
        fire_timers(agent);
        busy = wv_conn_turn(agent);
        if (n == 0 && idle && !busy && wants_spare(agent) &&
            wv_parent_make(agent, NULL) < 0)
            agent->spare_after = wv_now_us() + SPARE_RETRY_US;
    }
}

int main(void)
{
    struct wv_agent agent;
    struct wv_err err;

    memset(&agent, 0, sizeof agent);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "wovyr-agent"); /* what runs from a memfd has its name */
    if (is_hung_up(WV_LIFELINE))
        return NO_LIFELINE;
    take_over(&agent);
    if (wv_lockdown(&err) < 0)
        return NO_LOCKDOWN;
    if (make_loop(&agent) < 0)
        return NO_LOOP;
    serve(&agent);
}
