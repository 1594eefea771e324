/* supervisor.c - the loop: sockets, pidfds and timers; no path, no wait
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervisor/client.h"
#include "supervisor/confine.h"
#include "supervisor/launchers.h"
#include "supervisor/roles.h"
#include "supervisor/session.h"

#define EVENTS 64
#define RETRY_MS 10      /* while a role's socket is full */
#define FAREWELL_MS 1000 /* for the last words to a client */

/* --- watches ----------------------------------------------------------------- */

int wv_watch_add(struct wv_supervisor *super, struct wv_watch *watch, uint32_t events,
                 struct wv_err *err)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (epoll_ctl(super->epoll, EPOLL_CTL_ADD, watch->fd, &event) < 0)
        return wv_fail_errno(err, "supervisor", "watching a descriptor");
    watch->on = 1;
    return 0;
}

void wv_watch_want(struct wv_supervisor *super, struct wv_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (watch->on)
        epoll_ctl(super->epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

/* By hand: a passed descriptor is open elsewhere too, so closing ours removes nothing.
 * */
void wv_watch_drop(struct wv_supervisor *super, struct wv_watch *watch)
{
    if (watch->on)
        epoll_ctl(super->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->on = 0;
}

void wv_watch_close(struct wv_supervisor *super, struct wv_watch *watch)
{
    wv_watch_drop(super, watch);
    wv_fd_drop(&watch->fd);
}

uint64_t wv_ticket(struct wv_supervisor *super)
{
    return ++super->last_ticket;
}

/* --- the janitor ------------------------------------------------------------- */

int wv_ask_janitor(struct wv_supervisor *super, const struct wv_role_request *req,
                   size_t n, struct wv_err *err)
{
    if (super->janitor_gone)
        return wv_fail(err, WV_EUNAVAILABLE, "supervisor", "the janitor has ended");
    return wv_link_send(&super->janitor, req, offsetof(struct wv_role_request, u) + n,
                        NULL, 0, err);
}

static void learn_node(struct wv_supervisor *super)
{
    super->node_known = 1;
    wv_clients_node(super);
    wv_sessions_advance(super);
}

static void take_slot(struct wv_supervisor *super, struct wv_link_in *in)
{
    struct wv_err err = {0};

    if (wv_pool_slotted(super, in, &err) < 0) {
        wv_sessions_fail_one(super, &err);
        if (wv_sessions_waiting(super) == 0)
            return; /* the next open asks again */
    }
    wv_sessions_advance(super);
    wv_pool_refill(super, wv_sessions_waiting(super));
}

static void on_janitor(struct wv_supervisor *super, void *owner, uint32_t events)
{
    struct wv_link_in in;
    struct wv_err err;
    int rc = 0;

    (void)owner;
    (void)events;
    for (int i = 0; i < EVENTS && (rc = wv_link_recv(&super->janitor, &in, &err)) > 0;
         i++) {
        switch ((int)in.req.head.type) {
        case WV_ROLE_SLOTTED:
            take_slot(super, &in);
            break;
        case WV_ROLE_NODE:
            if (in.req.u.node.len <= sizeof in.req.u.node.facts)
                wv_node_unpack(&super->node, in.req.u.node.facts, in.req.u.node.len);
            learn_node(super);
            break;
        default:
            if (!wv_clients_answer(super, &in.req))
                wv_session_counted(super, in.req.head.ticket, &in.req.u.usage);
        }
        wv_link_in_drop(&in);
    }
    if (rc >= 0)
        return;
    super->janitor_gone = 1;
    wv_watch_drop(super, &super->janitor_watch);
    wv_link_fini(&super->janitor);
    wv_clients_janitor_died(super);
    if (!super->node_known) {
        wv_fail(&err, WV_EUNAVAILABLE, "supervisor", "the janitor has ended");
        wv_node_fail(&super->node, &err);
        learn_node(super);
    }
    wv_sessions_janitor_died(super);
}

/* --- the launcher ------------------------------------------------------------ */

/* Its pid namespace went with it: there is nothing left to wait for. */
static void on_launcher_gone(struct wv_supervisor *super, void *owner, uint32_t events)
{
    (void)owner;
    (void)events;
    wv_watch_drop(super, &super->root_pid);
    wv_watch_drop(super, &super->root_watch);
    wv_sessions_lost(super, "the launcher has died, and every session with it");
    super->ending = 1;
}

/* The launcher proper says nothing on its own socket: a readable one has hung up. */
static void on_launcher_socket(struct wv_supervisor *super, void *owner,
                               uint32_t events)
{
    char byte;

    if (recv(super->root.sock, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN)
        on_launcher_gone(super, owner, events);
}

/* --- the loop ---------------------------------------------------------------- */

static void on_timer(struct wv_supervisor *super, void *owner, uint32_t events)
{
    uint64_t fired;

    (void)owner;
    (void)events;
    if (read(super->timer, &fired, sizeof fired) > 0)
        super->deadlines = 1;
}

static void set_timer(struct wv_supervisor *super)
{
    uint64_t at = wv_sessions_tick(super, wv_boot_ms());
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000),
                     .tv_nsec = (long)(at % 1000) * 1000000}
    };

    super->deadlines = 0;
    timerfd_settime(super->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void bury(struct wv_supervisor *super)
{
    super->deaths = 0;
    wv_sessions_bury(super);
    wv_launchers_bury(super);
    wv_clients_bury(super);
}

static int send_waiting(struct wv_supervisor *super)
{
    int all = super->janitor_gone || wv_link_flush(&super->janitor);

    return wv_launchers_flush(super) & all;
}

static void turn(struct wv_supervisor *super, int timeout)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(super->epoll, events, EVENTS, timeout);

    for (int i = 0; i < n; i++) {
        struct wv_watch *watch = events[i].data.ptr;

        if (watch->on)
            watch->ready(super, watch->owner, events[i].events);
    }
}

static void loop(struct wv_supervisor *super)
{
    while (!super->ending) {
        int timeout = -1;

        if (wv_clients_go_on(super))
            timeout = 0;
        else if (!send_waiting(super))
            timeout = RETRY_MS;
        if (super->deadlines)
            set_timer(super);
        wv_clients_flush(super, 0);
        if (super->deaths)
            bury(super);
        if (!super->ending)
            turn(super, timeout);
    }
}

static int init(struct wv_supervisor *super, const struct wv_roles *roles,
                struct wv_err *err)
{
    struct rlimit files = {0};
    int rc;

    *super = (struct wv_supervisor){
        .roles = roles, .root = roles->launcher, .janitor = roles->janitor};
    getrlimit(RLIMIT_NOFILE, &files);
    super->descriptors =
        files.rlim_cur > UINT32_MAX ? UINT32_MAX : (uint32_t)files.rlim_cur;
    super->epoll = epoll_create1(EPOLL_CLOEXEC);
    super->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (super->epoll < 0 || super->timer < 0)
        return wv_fail_errno(err, "supervisor", "the event loop");
    super->timer_watch = (struct wv_watch){.fd = super->timer, .ready = on_timer};
    super->root_watch =
        (struct wv_watch){.fd = super->root.sock, .ready = on_launcher_socket};
    super->root_pid =
        (struct wv_watch){.fd = roles->launcher_pid, .ready = on_launcher_gone};
    super->janitor_watch =
        (struct wv_watch){.fd = super->janitor.sock, .ready = on_janitor};
    rc = wv_watch_add(super, &super->timer_watch, EPOLLIN, err);
    if (rc < 0 || roles->err.code < 0)
        return rc;
    if ((rc = wv_watch_add(super, &super->root_watch, EPOLLIN, err)) < 0 ||
        (rc = wv_watch_add(super, &super->root_pid, EPOLLIN, err)) < 0)
        return rc;
    return wv_watch_add(super, &super->janitor_watch, EPOLLIN, err);
}

/* Without its other roles it still answers: every open with the reason. */
static void begin(struct wv_supervisor *super)
{
    if (super->roles->err.code < 0) {
        super->janitor_gone = 1;
        wv_link_fini(&super->root);
        wv_link_fini(&super->janitor);
        wv_node_fail(&super->node, &super->roles->err);
        super->node_known = 1;
        return;
    }
    wv_launcher_prepare(super, WV_HOST_TEMPLATE);
    wv_pool_refill(super, 0);
}

int wv_supervisor_run(const struct wv_roles *roles, int control)
{
    struct wv_supervisor super;
    struct wv_err err;

    /* A role that ends is seen by its socket and its pidfd; nothing is left to wait for. */
    signal(SIGCHLD, SIG_IGN);
    if (init(&super, roles, &err) < 0 || wv_confine_calls(&err) < 0)
        return 1;
    begin(&super);
    if (wv_client_new(&super, control, 1, &err) < 0)
        return 1;
    loop(&super);
    wv_clients_flush(&super, FAREWELL_MS);
    /* The launcher takes every sandbox along; the janitor sees our sockets hang up,
     * waits for that to be complete, and removes what bears our name. */
    if (roles->launcher_pid >= 0)
        syscall(SYS_pidfd_send_signal, roles->launcher_pid, SIGKILL, NULL, 0);
    return 0;
}
