/* jail.h - from a clone of a template launcher to the agent of one sandbox
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_JAIL_H
#define WV_ISOLATION_JAIL_H

#include <sys/types.h>

#include "base/err.h"
#include "isolation/plan.h"
#include "isolation/template.h"

struct wv_jail {
    const struct wv_plan *plan;
    const struct wv_template *template;
    int lifeline, net, user; /* user: -1 when not mapped */
    int joins[WV_JOINS_MAX], works[WV_JOINS_MAX];
    int image;  /* the agent's executable */
    int report; /* where a failed step is written */
    uid_t base; /* what uid 0 of the sandbox is out here; gids alike */
    int proc;   /* mounted, without a place yet */
};

/* Runs in the child, never comes back: it becomes the agent, or writes a struct wv_err
 * to jail->report and ends with status 127. */
_Noreturn void wv_jail_enter(struct wv_jail *jail);

/* Only test builds can leave a protection out. */
static inline int wv_jail_omits(const struct wv_jail *jail, enum wv_wall wall)
{
#ifdef WV_TEST
    return (int)(jail->plan->omit >> wall & 1u);
#else
    (void)jail;
    (void)wall;
    return 0;
#endif
}

#endif
