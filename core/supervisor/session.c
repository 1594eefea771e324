/* session.c - a session comes up: from OPEN to the agent
 *
 * Theory of operation. What a client sees are states; below them are the steps of one
 * launch, each ended by somebody's answer:
 *
 *   WAIT --slot and launcher--> LAUNCH --LAUNCHED--> REPORT --eof--> LIVE
 *     |                           |                    |              |
 *     `------- failure -----------`------- gone -------`---- gone ----+--> COUNT
 *                                                                     |      |
 *                                                                     `------+--> OVER
 *
 * gone: the pidfd of PID 1 became readable, and with it the whole sandbox has ended. If
 * we killed it the session is closed, else it is lost, and the janitor's counters say
 * whether memory was the reason. Closing is only the kill; everything after it is the
 * same path for a guest that was killed, crashed, or never came up.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/session.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "supervisor/client.h"
#include "supervisor/warm.h"

/* --- coming up --------------------------------------------------------------- */

static void opened(struct wv_session *session)
{
    uint8_t packed[16384];
    struct wv_msg_OPENED msg = {.id = wv_str(session->id)};
    struct wv_node facts;
    uint64_t now = wv_boot_ms();
    long len;

    wv_limits_facts(&session->limits, &session->pooled.slot, &session->super->node,
                    &facts);
    len = wv_node_pack(&facts, packed, sizeof packed);
    session->step = WV_STEP_LIVE;
    session->answered = 1;
    session->started_ms = wv_clock_us(CLOCK_REALTIME) / 1000;
    session->touched_at = now;
    session->ends_at = session->life_ms > 0 ? now + session->life_ms : 0;
    session->super->deadlines = 1;
    msg.started_ms = session->started_ms;
    msg.ends_ms = wv_session_ends_ms(session);
    msg.guarantees.ptr = (const char *)packed;
    msg.guarantees.len = len > 0 ? (uint32_t)len : 0;
    msg.guarantees.count = len > 0 ? WV_HAS : 0;
    if (session->client != NULL)
        wv_client_send(session->client, session->stream, WV_MSG_OPENED, &msg);
    wv_pool_refill(session->super, wv_sessions_waiting(session->super));
    wv_warm_like(session);
}

/* The error pipe: bytes of a struct wv_err, or only its end. */
static void read_report(struct wv_session *session)
{
    struct wv_supervisor *super = session->super;
    ssize_t n;

    if (session->report.fd < 0)
        return;
    do {
        n = read(session->report.fd, (char *)&session->failure + session->told,
                 sizeof session->failure - session->told);
        if (n > 0)
            session->told += (size_t)n;
    } while (n > 0 && session->told < sizeof session->failure);
    if (n < 0 && (errno == EAGAIN || errno == EINTR) &&
        session->told < sizeof session->failure)
        return;
    wv_watch_close(super, &session->report);
    if (session->told == 0 && !session->closing) {
        if (session->warm)
            session->step = WV_STEP_LIVE;
        else
            opened(session);
        return;
    }
    if (session->told > 0 && session->told < sizeof session->failure)
        wv_fail(&session->failure, WV_EFAILED, "open", "the launch failed half-way");
    wv_session_kill(session);
}

static void on_report(struct wv_supervisor *super, void *owner, uint32_t events)
{
    (void)super;
    (void)events;
    read_report(owner);
}

/* Both may become readable in one turn, in either order. */
static void on_gone(struct wv_supervisor *super, void *owner, uint32_t events)
{
    (void)super;
    (void)events;
    read_report(owner);
    wv_session_gone(owner);
}

void wv_session_launched(struct wv_supervisor *super, struct wv_link_in *in)
{
    struct wv_session *session = super->sessions;
    struct wv_err err = in->req.head.err;

    while (session != NULL &&
           (session->ticket != in->req.head.ticket || session->step != WV_STEP_LAUNCH))
        session = session->next;
    if (session == NULL)
        return;
    if (err.code == 0 && in->nfds != 2)
        wv_fail(&err, WV_EPROTOCOL, "open", "the launcher sent %zu descriptors",
                in->nfds);
    if (err.code < 0) {
        wv_session_fail(session, &err);
        return;
    }
    session->step = WV_STEP_REPORT;
    session->pidfd.fd = in->fds[0];
    session->report.fd = in->fds[1];
    in->nfds = 0;
    if (wv_watch_add(super, &session->pidfd, EPOLLIN, &err) < 0 ||
        wv_watch_add(super, &session->report, EPOLLIN, &err) < 0) {
        wv_session_kill(session);
        session->failure = err;
        wv_session_gone(session);
    } else if (session->closing && session->kill_at == 0) {
        wv_session_kill(session);
    }
}

/* --- its connections --------------------------------------------------------- */

struct wv_session *wv_session_find(struct wv_client *client, struct wv_str id)
{
    if (id.len != WV_SESSION_ID_LEN)
        return NULL;
    for (struct wv_session *s = client->super->sessions; s != NULL; s = s->next)
        if (s->client == client && memcmp(s->id, id.ptr, id.len) == 0)
            return s;
    return NULL;
}

uint8_t wv_session_state(const struct wv_session *session)
{
    if (session->step == WV_STEP_COUNT)
        return WV_STATE_LOST;
    if (session->step == WV_STEP_OVER)
        return WV_STATE_CLOSED;
    if (session->closing)
        return WV_STATE_CLOSING;
    return session->step == WV_STEP_LIVE ? WV_STATE_RUNNING : WV_STATE_OPENING;
}

int wv_session_connect(struct wv_session *session, int fd, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int passed = fd;
    ssize_t n;

    if (session->lifeline < 0)
        return wv_fail(err, WV_ECONFLICT, "join", "the session is not running");
    n = wv_fd_send(session->lifeline, "C", 1, &passed, 1, err);
    if (n == WV_EAGAIN) /* an agent that takes no connections must not hold us up */
        return wv_fail(err, WV_ECAPACITY, "join",
                       "too many connections wait for the agent");
    return n < 0 ? (int)n : 0;
}

/* --- launching --------------------------------------------------------------- */

static int new_lifeline(struct wv_session *session, int *theirs, struct wv_err *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return wv_fail_errno(err, "open", "a lifeline");
    session->lifeline = pair[0];
    *theirs = pair[1];
    if (wv_fd_nonblock(session->lifeline) < 0)
        return wv_fail_errno(err, "open", "a lifeline");
    if (session->warm)
        return 0;
    return wv_session_connect(session, wv_fd_take(&session->first), err);
}

static int launch(struct wv_session *session, struct wv_err *err)
{
    struct wv_role_request req = {
        .head = {.type = WV_ROLE_LAUNCH,
                 .number = session->number,
                 .ticket = session->ticket}
    };
    struct wv_pooled *pooled = &session->pooled;
    const struct wv_slot *slot = &pooled->slot;
    size_t given = 1u + slot->mapped + slot->cgroup2 + slot->joins + slot->works;
    size_t sets = (size_t)slot->set_memory + slot->set_swap + slot->set_pids +
                  (slot->set_cpu > 0);
    WV_AUTO(wv_fd_drop) int theirs = -1;
    int fds[WV_FDS_MAX], rc;
    size_t nfds = 0;

    if ((rc = wv_limits_apply(&session->limits, pooled, err)) < 0 ||
        (rc = new_lifeline(session, &theirs, err)) < 0)
        return rc;
    wv_limits_plan(&session->limits, slot, &req.u.plan);
    fds[nfds++] = wv_fd_take(&theirs);
    for (size_t i = 0; i < pooled->nfds; i++)
        if (i < given ||
            i >= given + sets) /* what follows the limit files is the lease */
            fds[nfds++] = wv_fd_take(&pooled->fds[i]);
    session->step = WV_STEP_LAUNCH;
    rc = wv_link_send(&session->launcher->link, &req,
                      offsetof(struct wv_role_request, u) + sizeof req.u.plan, fds,
                      nfds, err);
    wv_pooled_drop(pooled); /* the limit files; by now the launcher is at work */
    return rc;
}

static void advance(struct wv_session *session)
{
    struct wv_supervisor *super = session->super;
    struct wv_err err = {0};
    int rc;

    if (session->step != WV_STEP_WAIT)
        return;
    if (session->number == 0) {
        rc = wv_pool_take(super, &session->pooled, &err);
        if (rc < 0)
            wv_session_fail(session, &err);
        if (rc <= 0)
            return;
        session->number = session->pooled.slot.number;
        rc = wv_limits_fit(&session->limits, &session->pooled.slot, &super->node, &err);
        if (rc < 0) {
            session->number = 0; /* nothing was done to it: it stays good */
            wv_pool_return(super, &session->pooled);
            wv_session_fail(session, &err);
            return;
        }
    }
    if (session->launcher->ready && launch(session, &err) < 0)
        wv_session_fail(session, &err);
}

/* The facts come with the first slot, and a refusal needs them. */
void wv_sessions_advance(struct wv_supervisor *super)
{
    struct wv_session *next;

    for (struct wv_session *s = super->sessions; s != NULL && super->node_known;
         s = next) {
        next = s->next;
        advance(s);
    }
    if (super->pool.n == 0)
        wv_pool_refill(super, wv_sessions_waiting(super));
}

void wv_sessions_fail_one(struct wv_supervisor *super, const struct wv_err *why)
{
    for (struct wv_session *s = super->sessions; s != NULL; s = s->next)
        if (s->step == WV_STEP_WAIT && s->number == 0) {
            wv_session_fail(s, why);
            return;
        }
}

unsigned wv_sessions_waiting(const struct wv_supervisor *super)
{
    unsigned n = 0;

    for (const struct wv_session *s = super->sessions; s != NULL; s = s->next)
        n += s->step == WV_STEP_WAIT && s->number == 0;
    return n;
}

/* --- opening ----------------------------------------------------------------- */

static int name_template(const struct wv_msg_OPEN *open, char *name, size_t room,
                         struct wv_err *err)
{
    if (open->template.len == 0) {
        snprintf(name, room, WV_HOST_TEMPLATE);
        return 0;
    }
    if (wv_str_copy(open->template, name, room) < 0 || !wv_catalog_is_name(name)) {
        char shown[64];

        snprintf(shown, sizeof shown, "%.*s", (int)open->template.len,
                 open->template.ptr);
        return wv_launcher_missing(shown, err);
    }
    return 0;
}

/* pidfd, lifeline, error pipe, and what waits to be passed on; the slots in the pool.
 * */
#define FDS_PER_SESSION 6u
#define FDS_BESIDE (64u + WV_POOL_MAX * WV_FDS_MAX)

static int room_for_one(const struct wv_supervisor *super, struct wv_err *err)
{
    if (super->n_sessions < WV_SESSIONS_MAX &&
        super->descriptors >= FDS_BESIDE + FDS_PER_SESSION * (super->n_sessions + 1))
        return 0;
    return wv_fail(err, WV_ECAPACITY, "open", "%u sessions are open", super->n_sessions);
}

/* A session that is nobody's, standing on launcher, which has counted it. */
static struct wv_session *new_session(struct wv_supervisor *super,
                                      struct wv_launcher *launcher,
                                      const struct wv_limits *limits,
                                      struct wv_err *err)
{
    unsigned char random[WV_SESSION_ID_LEN / 2];
    struct wv_session *session = calloc(1, sizeof *session);

    if (session == NULL ||
        getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        wv_fail(err, WV_ECAPACITY, "open", "no memory for another session");
        free(session);
        return NULL;
    }
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(session->id + 2 * i, 3, "%02x", random[i]);
    session->super = super;
    session->launcher = launcher;
    session->limits = *limits;
    session->ticket = wv_ticket(super);
    session->first = session->lifeline = -1;
    session->pidfd = (struct wv_watch){.fd = -1, .ready = on_gone, .owner = session};
    session->report = (struct wv_watch){.fd = -1, .ready = on_report, .owner = session};
    if (super->last_session != NULL)
        super->last_session->next = session;
    else
        super->sessions = session;
    super->last_session = session;
    super->n_sessions++;
    return session;
}

/* Give a session its owner, who opened it with first. */
static int own(struct wv_session *session, struct wv_client *client, uint32_t stream,
               const struct wv_msg_OPEN *open, int first, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int passed = first;
    uint32_t len = open->metadata.len;

    session->metadata = malloc(len + 1u);
    if (session->metadata == NULL)
        return wv_fail(err, WV_ECAPACITY, "open", "no memory for another session");
    if (len > 0)
        memcpy(session->metadata, open->metadata.ptr, len);
    session->metadata_len = len;
    session->client = client;
    session->stream = stream;
    session->life_ms = open->life_ms;
    session->idle_ms = open->idle_ms;
    session->first = wv_fd_take(&passed);
    wv_client_bind(client, stream, session);
    return 0;
}

/* Take the sandbox that waits, if it is what is asked for. */
static int open_warm(struct wv_launcher *launcher, const struct wv_limits *limits,
                     struct wv_client *client, uint32_t stream,
                     const struct wv_msg_OPEN *open, int first)
{
    struct wv_session *session = wv_warm_take(client->super, launcher, limits);
    struct wv_err err;

    if (session == NULL)
        return 0;
    session->ends_at = 0;
    if (own(session, client, stream, open, first, &err) < 0 ||
        wv_session_connect(session, wv_fd_take(&session->first), &err) < 0) {
        /* It has died, or is about to; the client has to know, once. */
        wv_client_error(client, stream, &err);
        session->client = NULL;
        wv_session_close(session, WV_REASON_SHUTDOWN, 0);
        return 1;
    }
    opened(session);
    return 1;
}

void wv_session_warm(struct wv_supervisor *super, struct wv_launcher *launcher,
                     const struct wv_limits *limits, uint64_t keep_ms)
{
    struct wv_session *session;
    struct wv_err err;

    if (launcher->dead || launcher->retired || room_for_one(super, &err) < 0)
        return;
    session = new_session(super, launcher, limits, &err);
    if (session == NULL)
        return;
    launcher->sessions++;
    session->warm = 1;
    session->ends_at = wv_boot_ms() + keep_ms;
    advance(session);
}

void wv_session_open(struct wv_client *client, uint32_t stream,
                     const struct wv_msg_OPEN *open, int fd)
{
    struct wv_supervisor *super = client->super;
    WV_AUTO(wv_fd_drop) int first = fd;
    char name[WV_TEMPLATE_NAME_MAX + 1];
    struct wv_launcher *launcher = NULL;
    struct wv_session *session = NULL;
    struct wv_limits limits;
    struct wv_err err = {0};

    if (fd < 0)
        wv_fail(&err, WV_EINVALID, "open", "OPEN comes with a descriptor");
    else if (name_template(open, name, sizeof name, &err) == 0 &&
             wv_limits_check(&limits, open, &err) == 0 &&
             room_for_one(super, &err) == 0)
        launcher = wv_launcher_join(super, name, &err);
    if (launcher != NULL &&
        open_warm(launcher, &limits, client, stream, open, first)) {
        (void)wv_fd_take(&first);
        wv_launcher_leave(launcher); /* the warm one had its own place */
        return;
    }
    if (launcher != NULL)
        session = new_session(super, launcher, &limits, &err);
    if (session != NULL && own(session, client, stream, open, wv_fd_take(&first), &err) < 0) {
        wv_session_fail(session, &err);
        session = NULL;
    } else if (session == NULL && launcher != NULL) {
        wv_launcher_leave(launcher);
    }
    if (session == NULL) {
        wv_client_error(client, stream, &err);
        return;
    }
    if (super->node_known)
        advance(session);
    if (super->pool.n == 0)
        wv_pool_refill(super, wv_sessions_waiting(super));
}
