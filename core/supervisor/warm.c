/* warm.c - a sandbox made ahead, like the last one that was opened
 *
 * Who opens sessions mostly opens the same kind again. So a moment after an open one more
 * sandbox with the same template and limits is launched, up to the agent that waits for
 * its first connection; the next open takes it and is spared the launch. It has never met
 * a client and is used once, like everything made ahead. One that nobody takes is given
 * up after a while: it costs half a mebibyte.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/warm.h"

#include "base/clock.h"

#define DELAY_MS 4      /* not in the way of the first command */
#define KEEP_MS 60000   /* of one that nobody takes */

static int alike(const struct wv_limits *a, const struct wv_limits *b)
{
    return a->memory == b->memory && a->disk == b->disk && a->cpu_milli == b->cpu_milli &&
           a->pids == b->pids && a->nofile == b->nofile && a->best == b->best;
}

static struct wv_session *find(struct wv_supervisor *super)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next)
        if (s->warm && !s->closing && s->step != WV_STEP_OVER)
            return s;
    return NULL;
}

struct wv_session *wv_warm_take(struct wv_supervisor *super,
                                const struct wv_launcher *launcher,
                                const struct wv_limits *limits)
{
    struct wv_session *session = find(super);

    if (session == NULL || session->step != WV_STEP_LIVE ||
        session->launcher != launcher || !alike(&session->limits, limits))
        return NULL;
    session->warm = 0;
    return session;
}

void wv_warm_like(const struct wv_session *session)
{
    struct wv_supervisor *super = session->super;

    super->warm.launcher = session->launcher;
    super->warm.limits = session->limits;
    super->warm.at = wv_boot_ms() + DELAY_MS;
    super->deadlines = 1;
}

uint64_t wv_warm_tick(struct wv_supervisor *super, uint64_t now)
{
    struct wv_session *session;

    if (super->warm.launcher == NULL || super->warm.at == 0)
        return 0;
    if (super->warm.at > now)
        return super->warm.at;
    super->warm.at = 0;
    session = find(super);
    if (session != NULL && session->launcher == super->warm.launcher &&
        alike(&session->limits, &super->warm.limits))
        return 0;
    if (session != NULL)
        wv_session_close(session, WV_REASON_SHUTDOWN, 0);
    /* Only from what lies ready: an open that waits comes first. */
    if (super->pool.n > 0 && wv_sessions_waiting(super) == 0)
        wv_session_warm(super, super->warm.launcher, &super->warm.limits, KEEP_MS);
    return 0;
}

unsigned wv_warm_on(struct wv_supervisor *super, const struct wv_launcher *launcher)
{
    const struct wv_session *session = find(super);

    return session != NULL && session->launcher == launcher;
}

void wv_warm_drop(struct wv_supervisor *super, const struct wv_launcher *launcher)
{
    struct wv_session *session = find(super);

    if (super->warm.launcher == launcher)
        super->warm.launcher = NULL;
    if (session != NULL && session->launcher == launcher)
        wv_session_close(session, WV_REASON_SHUTDOWN, 0);
}
