/* supervisor.h - the loop, and what its parts share
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_SUPERVISOR_H
#define WV_SUPERVISOR_SUPERVISOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "supervisor/limits.h"
#include "supervisor/link.h"
#include "supervisor/node.h"
#include "supervisor/pool.h"

#define WV_SESSIONS_MAX 1024

struct wv_supervisor;
struct wv_client;
struct wv_session;
struct wv_launcher;

/* A descriptor in the loop. ready may end anything: what has ended is only marked, and
 * freed when the turn is over. */
struct wv_watch {
    int fd;
    uint8_t on;
    void (*ready)(struct wv_supervisor *super, void *owner, uint32_t events);
    void *owner;
};

struct wv_roles;

struct wv_supervisor {
    int epoll, timer; /* timer: the next deadline of a session, CLOCK_BOOTTIME */
    const struct wv_roles *roles;
    struct wv_link root; /* to the launcher proper */
    struct wv_link janitor;
    struct wv_watch root_watch, root_pid, janitor_watch, timer_watch;
    struct wv_launcher *launchers;
    struct wv_client *clients;
    struct wv_session *sessions, *last_session; /* in the order of their opening */
    unsigned n_sessions;
    struct wv_pool pool;
    struct {
        struct wv_launcher *launcher; /* NULL: nothing was opened yet */
        struct wv_limits limits;
        uint64_t at; /* when to make one like this (boottime, ms); 0: not now */
    } warm;
    struct wv_node node;
    uint8_t node_known, janitor_gone;
    uint8_t ending;    /* leave the loop */
    uint8_t deaths;    /* something is marked to be freed */
    uint8_t deadlines; /* the timer must be set anew */
    uint64_t last_ticket;
    uint32_t descriptors; /* how many we may have */
};

/* Run until the host is gone or nothing can be done any more. control: the host's
 * connection. */
int wv_supervisor_run(const struct wv_roles *roles, int control);

int wv_watch_add(struct wv_supervisor *super, struct wv_watch *watch, uint32_t events,
                 struct wv_err *err);
void wv_watch_want(struct wv_supervisor *super, struct wv_watch *watch,
                   uint32_t events);
void wv_watch_drop(struct wv_supervisor *super, struct wv_watch *watch);
void wv_watch_close(struct wv_supervisor *super,
                    struct wv_watch *watch); /* and its fd */

/* A number for a request, never used twice. */
uint64_t wv_ticket(struct wv_supervisor *super);

/* Send req's head and n bytes of its union to the janitor, without descriptors. */
int wv_ask_janitor(struct wv_supervisor *super, const struct wv_role_request *req,
                   size_t n, struct wv_err *err);

#endif
