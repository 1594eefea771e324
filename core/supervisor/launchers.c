/* launchers.c - template launchers as the supervisor sees them
 *
 * One per template, made on first use and kept. Its socket is all there is to it: a
 * hang-up means that it and its sandboxes are gone, closing it makes that so.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/launchers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/roles.h"
#include "supervisor/session.h"
#include "supervisor/warm.h"

#define IDLE_MAX 16 /* launchers without a session that are kept */

static void die(struct wv_launcher *launcher, const struct wv_err *why)
{
    struct wv_supervisor *super = launcher->super;

    if (launcher->dead)
        return;
    launcher->dead = 1;
    super->deaths = 1;
    wv_watch_drop(super, &launcher->watch);
    wv_link_fini(&launcher->link);
    wv_sessions_launcher_died(super, launcher, why);
}

int wv_launcher_missing(const char *name, struct wv_err *err)
{
    wv_fail(err, WV_ENOT_FOUND, "open",
            "no template %s; one is made by wovyr.template { name = ..., base = ... "
            "}:build() "
            "and opened by that name",
            name);
    snprintf(err->field, sizeof err->field, "template");
    return WV_ENOT_FOUND;
}

static void take(struct wv_launcher *launcher, struct wv_link_in *in)
{
    struct wv_supervisor *super = launcher->super;
    struct wv_err *err = &in->req.head.err;

    switch ((int)in->req.head.type) {
    case WV_ROLE_READY:
        launcher->ready = err->code == 0;
        if (err->code == WV_ENOT_FOUND && strcmp(launcher->name, WV_HOST_TEMPLATE) != 0)
            wv_launcher_missing(launcher->name, err);
        if (launcher->ready)
            wv_sessions_advance(super);
        else
            die(launcher, err);
        break;
    case WV_ROLE_LAUNCHED:
        wv_session_launched(super, in);
        break;
    case WV_ROLE_REAPED:
        wv_session_reaped(super, in->req.head.ticket, in->req.head.status);
        break;
    default:
        break;
    }
}

static void on_message(struct wv_supervisor *super, void *owner, uint32_t events)
{
    struct wv_launcher *launcher = owner;
    struct wv_link_in in;
    struct wv_err err = {0};
    int rc = 0;

    (void)super;
    (void)events;
    for (int i = 0; i < 64 && !launcher->dead; i++) {
        rc = wv_link_recv(&launcher->link, &in, &err);
        if (rc <= 0)
            break;
        take(launcher, &in);
        wv_link_in_drop(&in);
    }
    if (rc < 0 && !launcher->dead) {
        wv_fail(&err, WV_EUNAVAILABLE, "open", "the launcher of template %s has died",
                launcher->name);
        die(launcher, &err);
    }
}

/* Too many that nobody uses: the oldest goes. */
static void limit_idle(struct wv_supervisor *super)
{
    struct wv_launcher *oldest = NULL;
    unsigned idle = 0;

    for (struct wv_launcher *l = super->launchers; l != NULL; l = l->next)
        if (!l->dead && l->ready && l->sessions == 0 &&
            strcmp(l->name, WV_HOST_TEMPLATE) != 0) {
            idle++;
            oldest = l; /* new ones come first in the list */
        }
    if (idle > IDLE_MAX)
        die(oldest, NULL);
}

static struct wv_launcher *make(struct wv_supervisor *super, const char *name,
                                struct wv_err *err)
{
    struct wv_launcher *launcher = calloc(1, sizeof *launcher);
    struct wv_role_request req = {
        .head = {.type = WV_ROLE_TEMPLATE, .ticket = wv_ticket(super)}
    };
    int theirs, rc;

    if (launcher == NULL) {
        wv_fail(err, WV_ECAPACITY, "open", "no memory for a launcher");
        return NULL;
    }
    if (super->roles->err.code < 0) {
        *err = super->roles->err;
        err->code = WV_EUNAVAILABLE;
        free(launcher);
        return NULL;
    }
    launcher->super = super;
    snprintf(launcher->name, sizeof launcher->name, "%s", name);
    launcher->watch =
        (struct wv_watch){.fd = -1, .ready = on_message, .owner = launcher};
    req.u.template.kind = WV_TEMPLATE_HOST;
    snprintf(req.u.template.name, sizeof req.u.template.name, "%s", name);
    if (strcmp(name, WV_HOST_TEMPLATE) != 0) {
        req.u.template.kind = WV_TEMPLATE_ROOTFS;
        snprintf(req.u.template.source, sizeof req.u.template.source, "%s/%s/root",
                 WV_CATALOG, name);
    }
    rc = wv_link_pair(&launcher->link, &theirs, err);
    if (rc == 0)
        rc = wv_link_send(&super->root, &req,
                          offsetof(struct wv_role_request, u) + sizeof req.u.template,
                          &theirs, 1, err);
    launcher->watch.fd = launcher->link.sock;
    if (rc == 0)
        rc = wv_watch_add(super, &launcher->watch, EPOLLIN, err);
    if (rc < 0) {
        wv_link_fini(&launcher->link);
        free(launcher);
        return NULL;
    }
    launcher->next = super->launchers;
    super->launchers = launcher;
    limit_idle(super);
    return launcher;
}

static struct wv_launcher *find(struct wv_supervisor *super, const char *name)
{
    struct wv_launcher *launcher = super->launchers;

    while (launcher != NULL &&
           (launcher->dead || launcher->retired || strcmp(launcher->name, name) != 0))
        launcher = launcher->next;
    return launcher;
}

struct wv_launcher *wv_launcher_join(struct wv_supervisor *super, const char *name,
                                     struct wv_err *err)
{
    struct wv_launcher *launcher = find(super, name);

    if (launcher == NULL)
        launcher = make(super, name, err);
    if (launcher != NULL)
        launcher->sessions++;
    return launcher;
}

void wv_launcher_leave(struct wv_launcher *launcher)
{
    launcher->sessions--;
    if (launcher->sessions == 0 && launcher->retired)
        die(launcher, NULL);
    launcher->super->deaths |= launcher->dead;
}

void wv_launcher_prepare(struct wv_supervisor *super, const char *name)
{
    if (find(super, name) == NULL)
        make(super, name, NULL);
}

int wv_launcher_retire(struct wv_supervisor *super, const char *name,
                       struct wv_err *err)
{
    struct wv_launcher *launcher = find(super, name);

    if (launcher == NULL)
        return 0;
    if (launcher->sessions > wv_warm_on(super, launcher))
        return wv_fail(err, WV_ECONFLICT, "template", "%u sessions stand on %s",
                       launcher->sessions, name);
    launcher->retired = 1;
    wv_warm_drop(super, launcher);
    if (launcher->sessions == 0)
        die(launcher, NULL);
    return 0;
}

void wv_launchers_bury(struct wv_supervisor *super)
{
    struct wv_launcher **at = &super->launchers;

    while (*at != NULL) {
        struct wv_launcher *launcher = *at;

        if (!launcher->dead || launcher->sessions > 0) {
            at = &launcher->next;
            continue;
        }
        *at = launcher->next;
        wv_warm_drop(super, launcher); /* no session is left, but a wish may be */
        free(launcher);
    }
}

int wv_launchers_flush(struct wv_supervisor *super)
{
    int all = wv_link_flush(&super->root);

    for (struct wv_launcher *l = super->launchers; l != NULL; l = l->next)
        all &= l->dead || wv_link_flush(&l->link);
    return all;
}
