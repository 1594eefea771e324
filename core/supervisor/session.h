/* session.h - one session: from OPEN to SESSION_END
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_SESSION_H
#define WV_SUPERVISOR_SESSION_H

#include "supervisor/launchers.h"
#include "supervisor/limits.h"
#include "supervisor/supervisor.h"
#include "wire/msg.h"

#define WV_SESSION_ID_LEN 32

enum wv_step {
    WV_STEP_WAIT,   /* for a slot or for its template's launcher */
    WV_STEP_LAUNCH, /* the launcher was asked to clone */
    WV_STEP_REPORT, /* cloned; the error pipe will say whether it became the agent */
    WV_STEP_LIVE,
    WV_STEP_COUNT, /* PID 1 is gone and was not told to: reading the counters why */
    WV_STEP_OVER,
};

struct wv_session {
    struct wv_session *next;
    struct wv_supervisor *super;
    struct wv_client *client; /* its owner; NULL: gone */
    struct wv_launcher *launcher;
    struct wv_limits limits;
    struct wv_pooled pooled;
    uint32_t stream; /* of the client */
    uint32_t number; /* of its slot; 0: none yet */
    uint64_t ticket;
    enum wv_step step;
    uint8_t closing, reason; /* told to end, and why (enum wv_reason) */
    uint8_t answered;        /* OPENED was sent: what follows is SESSION_END */
    uint8_t busy;
    uint8_t warm;            /* made ahead, nobody's yet */
    uint8_t reaped;
    int32_t status; /* of PID 1, if reaped */
    int first;      /* the client's end of the first connection */
    int lifeline;
    struct wv_watch pidfd, report;
    struct wv_err failure; /* why it did not open; code 0: no reason yet */
    size_t told;           /* bytes of failure that the error pipe gave */
    uint64_t started_ms;                   /* since 1970 */
    uint64_t life_ms, idle_ms;             /* as asked; 0: none */
    uint64_t ends_at, touched_at, kill_at; /* CLOCK_BOOTTIME, ms; 0: never */
    char id[WV_SESSION_ID_LEN + 1];
    uint32_t metadata_len;
    char *metadata;
};

/* Begin a session; takes fd. The outcome is sent to the client, later or at once. */
void wv_session_open(struct wv_client *client, uint32_t stream,
                     const struct wv_msg_OPEN *open, int fd);

/* Launch one that nobody has asked for yet; given up when nobody does for keep_ms. */
void wv_session_warm(struct wv_supervisor *super, struct wv_launcher *launcher,
                     const struct wv_limits *limits, uint64_t keep_ms);

/* Of this client, by id; NULL if there is none. */
struct wv_session *wv_session_find(struct wv_client *client, struct wv_str id);

void wv_session_close(struct wv_session *session, uint8_t reason, uint32_t grace_ms);
void wv_session_touch(struct wv_session *session);
void wv_session_busy(struct wv_session *session, int on);
uint64_t wv_session_extend(struct wv_session *session, uint64_t life_ms);
uint64_t
wv_session_ends_ms(const struct wv_session *session);       /* since 1970; 0: never */
uint8_t wv_session_state(const struct wv_session *session); /* enum wv_state */

/* Give the agent another connection; takes fd. */
int wv_session_connect(struct wv_session *session, int fd, struct wv_err *err);

/* --- between session.c and session_end.c ------------------------------------- */

void wv_session_fail(struct wv_session *session, const struct wv_err *why);
void wv_session_gone(struct wv_session *session);
void wv_session_kill(const struct wv_session *session);

/* --- what the rest of the supervisor tells ----------------------------------- */

void wv_sessions_advance(
    struct wv_supervisor *super); /* a slot or a launcher is ready */
void wv_sessions_fail_one(struct wv_supervisor *super, const struct wv_err *why);
unsigned wv_sessions_waiting(const struct wv_supervisor *super);
void wv_session_launched(struct wv_supervisor *super, struct wv_link_in *in);
void wv_session_reaped(struct wv_supervisor *super, uint64_t ticket, int32_t status);
void wv_session_counted(struct wv_supervisor *super, uint64_t ticket,
                        const struct wv_usage *usage);
void wv_sessions_launcher_died(struct wv_supervisor *super,
                               struct wv_launcher *launcher, const struct wv_err *why);
void wv_sessions_janitor_died(struct wv_supervisor *super);
void wv_sessions_lost(struct wv_supervisor *super, const char *detail);
void wv_sessions_owner_gone(struct wv_supervisor *super, struct wv_client *client);

/* Close what is due; returns the next deadline on CLOCK_BOOTTIME in ms, 0: none. */
uint64_t wv_sessions_tick(struct wv_supervisor *super, uint64_t now);

void wv_sessions_bury(struct wv_supervisor *super);

#endif
