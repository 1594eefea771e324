/* session_end.c - a session ends: closed, lost, or never come up
 *
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervisor/client.h"
#include "supervisor/session.h"
#include "supervisor/warm.h"

#define GRACE_MAX_MS 60000

static void over(struct wv_session *session)
{
    struct wv_supervisor *super = session->super;

    if (session->step == WV_STEP_OVER)
        return;
    session->step = WV_STEP_OVER;
    wv_watch_close(super, &session->pidfd);
    wv_watch_close(super, &session->report);
    wv_fd_drop(&session->first);
    wv_fd_drop(&session->lifeline);
    if (session->number != 0) {
        struct wv_role_request req = {
            .head = {.type = WV_ROLE_RELEASE, .number = session->number}
        };

        wv_pooled_drop(&session->pooled);
        wv_ask_janitor(super, &req, 0, NULL);
    }
    if (session->launcher != NULL)
        wv_launcher_leave(session->launcher);
    session->launcher = NULL;
    super->deaths = super->deadlines = 1;
    wv_pool_refill(super, wv_sessions_waiting(super));
}

void wv_session_fail(struct wv_session *session, const struct wv_err *why)
{
    if (session->step == WV_STEP_OVER)
        return;
    if (session->client != NULL)
        wv_client_error(session->client, session->stream, why);
    session->client = NULL;
    over(session);
}

static void end(struct wv_session *session, uint8_t state, uint8_t reason,
                uint64_t oom_kills, const char *detail)
{
    struct wv_msg_SESSION_END msg = {
        .state = state,
        .reason = reason,
        .oom_kills = oom_kills,
        .detail = wv_str(detail),
    };

    if (session->step == WV_STEP_OVER)
        return;
    if (session->client != NULL)
        wv_client_send(session->client, session->stream, WV_MSG_SESSION_END, &msg);
    session->client = NULL;
    over(session);
}

void wv_session_kill(const struct wv_session *session)
{
    if (session->pidfd.fd >= 0)
        syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
}

/* --- the end ----------------------------------------------------------------- */

static void say_lost(struct wv_session *session, uint64_t oom_kills)
{
    char detail[128] = "the agent ended";
    int killed = session->reaped && WIFSIGNALED(session->status);
    int by_oom = oom_kills > 0 &&
                 (!session->reaped || (killed && WTERMSIG(session->status) == SIGKILL));

    if (by_oom)
        snprintf(detail, sizeof detail, "the agent was killed for lack of memory");
    else if (killed)
        snprintf(detail, sizeof detail, "the agent ended by signal %d",
                 WTERMSIG(session->status));
    else if (session->reaped)
        snprintf(detail, sizeof detail, "the agent ended with status %d",
                 WEXITSTATUS(session->status));
    end(session, WV_STATE_LOST, by_oom ? WV_REASON_MEMORY : WV_REASON_NONE, oom_kills,
        detail);
}

static void lost(struct wv_session *session)
{
    struct wv_role_request req = {
        .head = {.type = WV_ROLE_USAGE,
                 .number = session->number,
                 .ticket = session->ticket}
    };

    session->step = WV_STEP_COUNT;
    if (wv_ask_janitor(session->super, &req, 0, NULL) < 0)
        say_lost(session, 0);
}

void wv_session_gone(struct wv_session *session)
{
    struct wv_supervisor *super = session->super;
    struct wv_err err = {0};

    wv_watch_close(super, &session->pidfd);
    wv_watch_close(super, &session->report);
    if (session->answered && session->closing) {
        end(session, WV_STATE_CLOSED, session->reason, 0, "");
    } else if (session->answered) {
        lost(session);
    } else if (session->failure.code < 0) {
        wv_session_fail(session, &session->failure);
    } else {
        if (session->closing)
            wv_fail(&err, WV_ECANCELLED, "open", "closed while it was opening");
        else
            wv_fail(&err, WV_EFAILED, "open", "the agent ended before it ran");
        wv_session_fail(session, &err);
    }
}

void wv_session_reaped(struct wv_supervisor *super, uint64_t ticket, int32_t status)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next)
        if (s->ticket == ticket && s->step != WV_STEP_OVER) {
            s->reaped = 1;
            s->status = status;
        }
}

void wv_session_counted(struct wv_supervisor *super, uint64_t ticket,
                        const struct wv_usage *usage)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next)
        if (s->ticket == ticket && s->step == WV_STEP_COUNT) {
            say_lost(s, usage->oom_kills);
            return;
        }
}

void wv_sessions_janitor_died(struct wv_supervisor *super)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next)
        if (s->step == WV_STEP_COUNT)
            say_lost(s, 0);
    wv_sessions_advance(super);
}

void wv_sessions_launcher_died(struct wv_supervisor *super,
                               struct wv_launcher *launcher, const struct wv_err *why)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next) {
        if (s->launcher != launcher || s->step == WV_STEP_OVER)
            continue;
        if (s->step == WV_STEP_WAIT || s->step == WV_STEP_LAUNCH)
            wv_session_fail(s, why);
        else
            wv_session_kill(s); /* as it should be by now; the pidfd will tell */
    }
}

void wv_sessions_lost(struct wv_supervisor *super, const char *detail)
{
    struct wv_err err = {0};

    wv_fail(&err, WV_EUNAVAILABLE, "open", "%s", detail);
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next) {
        wv_session_kill(s);
        if (s->answered)
            end(s, WV_STATE_LOST, WV_REASON_NONE, 0, detail);
        else
            wv_session_fail(s, &err);
    }
}

void wv_sessions_owner_gone(struct wv_supervisor *super, struct wv_client *client)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next)
        if (s->client == client) {
            s->client = NULL;
            wv_session_close(s, WV_REASON_OWNER, 0);
        }
}

/* --- closing ----------------------------------------------------------------- */

void wv_session_close(struct wv_session *session, uint8_t reason, uint32_t grace_ms)
{
    struct wv_err err = {0};

    if (session->step == WV_STEP_OVER || session->step == WV_STEP_COUNT)
        return;
    if (!session->closing)
        session->reason = reason == WV_REASON_NONE || reason > WV_REASON_FORK
                              ? WV_REASON_OWNER
                              : reason;
    session->closing = 1;
    if (session->step == WV_STEP_WAIT) {
        wv_fail(&err, WV_ECANCELLED, "open", "closed while it was opening");
        wv_session_fail(session, &err);
    } else if (grace_ms > 0) {
        session->kill_at =
            wv_boot_ms() + (grace_ms < GRACE_MAX_MS ? grace_ms : GRACE_MAX_MS);
        session->super->deadlines = 1;
    } else {
        session->kill_at = 0;
        wv_session_kill(session);
    }
}

void wv_session_touch(struct wv_session *session)
{
    session->touched_at = wv_boot_ms();
}

/* A foreground command is activity: no idle time passes while it runs. */
void wv_session_busy(struct wv_session *session, int on)
{
    session->busy = on != 0;
    session->touched_at = wv_boot_ms();
    session->super->deadlines = 1;
}

uint64_t wv_session_extend(struct wv_session *session, uint64_t life_ms)
{
    session->life_ms = life_ms;
    if (session->answered)
        session->ends_at = life_ms > 0 ? wv_boot_ms() + life_ms : 0;
    session->super->deadlines = 1;
    return wv_session_ends_ms(session);
}

uint64_t wv_session_ends_ms(const struct wv_session *session)
{
    uint64_t now = wv_boot_ms();

    if (session->ends_at == 0)
        return 0;
    return wv_clock_us(CLOCK_REALTIME) / 1000 +
           (session->ends_at > now ? session->ends_at - now : 0);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* When it is to be closed next, and why. */
static uint64_t deadline(const struct wv_session *session, uint8_t *why)
{
    uint64_t idle = session->idle_ms > 0 && !session->busy
                        ? session->touched_at + session->idle_ms
                        : 0;

    *why = WV_REASON_NONE;
    if (session->closing)
        return session->kill_at;
    if (session->step != WV_STEP_LIVE)
        return 0;
    *why = sooner(session->ends_at, idle) == session->ends_at && session->ends_at != 0
               ? WV_REASON_LIFETIME
               : WV_REASON_IDLE_TTL;
    return sooner(session->ends_at, idle);
}

uint64_t wv_sessions_tick(struct wv_supervisor *super, uint64_t now)
{
    uint64_t next = wv_warm_tick(super, now);

    for (struct wv_session *s = super->sessions; s != NULL; s = s->next) {
        uint8_t why;
        uint64_t at = deadline(s, &why);

        if (at != 0 && at <= now)
            wv_session_close(s, why, 0);
        else
            next = sooner(next, at);
    }
    return next;
}

void wv_sessions_bury(struct wv_supervisor *super)
{
    struct wv_session **at = &super->sessions;

    super->last_session = NULL;
    while (*at != NULL) {
        struct wv_session *session = *at;

        if (session->step != WV_STEP_OVER) {
            super->last_session = session;
            at = &session->next;
            continue;
        }
        *at = session->next;
        super->n_sessions--;
        free(session->metadata);
        free(session);
    }
}
