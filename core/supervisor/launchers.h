/* launchers.h - template launchers as the supervisor sees them
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_LAUNCHERS_H
#define WV_SUPERVISOR_LAUNCHERS_H

#include "supervisor/catalog.h"
#include "supervisor/link.h"
#include "supervisor/supervisor.h"

#define WV_HOST_TEMPLATE "host"

struct wv_launcher {
    struct wv_launcher *next;
    struct wv_link link;
    struct wv_watch watch;
    struct wv_supervisor *super;
    unsigned sessions; /* that need it, from waiting for it to their end */
    uint8_t ready, retired, dead;
    char name[WV_TEMPLATE_NAME_MAX + 1];
};

/* The launcher of a template, made when there is none yet. It may not be ready; whoever
 * waits is told. Counts the caller as one of its sessions. */
struct wv_launcher *wv_launcher_join(struct wv_supervisor *super, const char *name,
                                     struct wv_err *err);
void wv_launcher_leave(struct wv_launcher *launcher);

/* There is no such template, and how to come by one. */
int wv_launcher_missing(const char *name, struct wv_err *err);

/* Make one ahead. */
void wv_launcher_prepare(struct wv_supervisor *super, const char *name);

/* A template is removed: WV_ECONFLICT while sessions stand on it. */
int wv_launcher_retire(struct wv_supervisor *super, const char *name,
                       struct wv_err *err);

/* Free what is marked, between turns. */
void wv_launchers_bury(struct wv_supervisor *super);

/* Try again what waits to be sent. 1: nothing waits any more. */
int wv_launchers_flush(struct wv_supervisor *super);

#endif
