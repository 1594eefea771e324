/* client.c - one control connection: what a host asks of the supervisor
 *
 * Theory of operation. A session is the stream that opened it, and belongs to its
 * connection. The connection ends when the host hangs up, or when its pidfd, sent along
 * with HELLO, says that the process is gone although a child of it still holds the
 * socket. Both end its sessions; an embedded supervisor has only this one reason to
 * live.
 *
 * Requests that the janitor answers are kept as jobs, found again by their ticket.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/client.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "supervisor/launchers.h"
#include "supervisor/session.h"

static void drop(struct wv_client *client)
{
    struct wv_supervisor *super = client->super;

    if (client->dead)
        return;
    client->dead = 1;
    super->deaths = 1;
    super->ending |= client->embedded;
    wv_watch_close(super, &client->host);
    wv_watch_close(super, &client->sock);
    wv_sessions_owner_gone(super, client);
}

/* --- answers ----------------------------------------------------------------- */

void wv_client_bind(struct wv_client *client, uint32_t stream,
                    struct wv_session *session)
{
    struct wv_stream *at = wv_chan_stream(&client->chan, stream);

    if (at != NULL)
        at->user = session;
}

void wv_client_send(struct wv_client *client, uint32_t stream, uint8_t type,
                    const void *msg)
{
    if (!client->dead &&
        wv_chan_send(&client->chan, stream, type, msg, -1, NULL) == WV_EAGAIN)
        drop(client);
}

void wv_client_error(struct wv_client *client, uint32_t stream,
                     const struct wv_err *err)
{
    struct wv_msg_ERROR msg = {
        .code = (uint8_t)-err->code,
        .sys = (uint32_t)err->sys,
        .op = wv_str(err->op),
        .field = wv_str(err->field),
        .message = wv_str(err->msg),
    };

    wv_client_send(client, stream, WV_MSG_ERROR, &msg);
}

static void send_node(struct wv_client *client)
{
    uint8_t packed[8192];
    long len = wv_node_pack(&client->super->node, packed, sizeof packed);
    struct wv_msg_NODE msg = {
        .facts = {(const char *)packed, len > 0 ? (uint32_t)len : 0,
                  len > 0 ? WV_HAS : 0}
    };

    wv_client_send(client, 0, WV_MSG_NODE, &msg);
}

void wv_clients_node(struct wv_supervisor *super)
{
    for (struct wv_client *c = super->clients; c != NULL; c = c->next)
        if (!c->dead)
            send_node(c);
}

/* As many as the queue takes now; the rest when it is empty again. */
static void list_sessions(struct wv_client *client)
{
    struct wv_msg_END end = {0};

    for (struct wv_session *s = client->super->sessions; s != NULL; s = s->next) {
        struct wv_msg_SESSION msg = {
            .id = wv_str(s->id),
            .state = wv_session_state(s),
            .started_ms = s->started_ms,
            .ends_ms = wv_session_ends_ms(s),
            .template = wv_str(s->launcher != NULL ? s->launcher->name : ""),
            .metadata = {s->metadata, s->metadata_len},
        };

        if (s->client != client || s->ticket <= client->listed)
            continue;
        if (wv_buf_len(&client->chan.out) > WV_OUT_MAX / 2)
            return;
        wv_client_send(client, client->listing, WV_MSG_SESSION, &msg);
        client->listed = s->ticket;
    }
    wv_client_send(client, client->listing, WV_MSG_END, &end);
    client->listing = 0;
}

/* --- requests ---------------------------------------------------------------- */

static void on_host_gone(struct wv_supervisor *super, void *owner, uint32_t events)
{
    (void)super;
    (void)events;
    drop(owner);
}

static void hello(struct wv_client *client, struct wv_event *event)
{
    struct wv_err err = {0};

    if (event->msg.HELLO.version != WV_PROTOCOL_VERSION) {
        wv_fail(&err, WV_EPROTOCOL, "supervisor", "protocol %u is spoken here, not %u",
                WV_PROTOCOL_VERSION, event->msg.HELLO.version);
        wv_client_error(client, 0, &err);
        wv_chan_write(&client->chan, client->sock.fd, NULL);
        drop(client);
    } else if (event->fd >= 0) {
        client->host.fd = wv_fd_take(&event->fd);
        if (wv_watch_add(client->super, &client->host, EPOLLIN, &err) < 0)
            drop(client);
    }
}

static void join(struct wv_client *client, struct wv_event *event)
{
    struct wv_session *session = wv_session_find(client, event->msg.JOIN.id);
    struct wv_msg_OK ok = {0};
    struct wv_err err = {0};
    int rc;

    if (session == NULL)
        rc = wv_fail(&err, WV_ENOT_FOUND, "join", "no such session");
    else if (event->fd < 0)
        rc = wv_fail(&err, WV_EINVALID, "join", "JOIN comes with a descriptor");
    else
        rc = wv_session_connect(session, wv_fd_take(&event->fd), &err);
    if (rc < 0)
        wv_client_error(client, event->stream, &err);
    else
        wv_client_send(client, event->stream, WV_MSG_OK, &ok);
}

static void extend(struct wv_client *client, struct wv_event *event)
{
    struct wv_session *session = event->user;
    struct wv_msg_EXTENDED msg = {
        .ends_ms = wv_session_extend(session, event->msg.EXTEND.life_ms)};

    if (session->answered)
        wv_client_send(client, event->stream, WV_MSG_EXTENDED, &msg);
}

static void handle_session(struct wv_client *client, struct wv_event *event)
{
    struct wv_session *session = event->user;

    if (session == NULL || session->step == WV_STEP_OVER)
        return;
    switch (event->type) {
    case WV_MSG_TOUCH:
        wv_session_touch(session);
        break;
    case WV_MSG_BUSY:
        wv_session_busy(session, event->msg.BUSY.on);
        break;
    case WV_MSG_EXTEND:
        extend(client, event);
        break;
    case WV_MSG_CLOSE:
        wv_session_close(session, event->msg.CLOSE.reason, event->msg.CLOSE.grace_ms);
        break;
    case WV_MSG_CANCEL:
        wv_session_close(session, WV_REASON_OWNER, 0);
        break;
    default:
        break; /* CREDIT */
    }
}

static void handle(struct wv_client *client, struct wv_event *event)
{
    struct wv_role_request req = {0};
    struct wv_msg_PONG pong;

    switch (event->type) {
    case WV_MSG_HELLO:
        hello(client, event);
        break;
    case WV_MSG_PING:
        pong.token = event->msg.PING.token;
        wv_client_send(client, 0, WV_MSG_PONG, &pong);
        break;
    case WV_MSG_OPEN:
        wv_session_open(client, event->stream, &event->msg.OPEN,
                        wv_fd_take(&event->fd));
        break;
    case WV_MSG_JOIN:
        join(client, event);
        break;
    case WV_MSG_USAGE:
        wv_client_ask_usage(client, event);
        break;
    case WV_MSG_SESSIONS:
        if (client->listing != 0) {
            struct wv_err err;

            wv_fail(&err, WV_ECAPACITY, "sessions", "a listing is under way");
            wv_client_error(client, event->stream, &err);
            break;
        }
        client->listing = event->stream;
        client->listed = 0;
        list_sessions(client);
        break;
    case WV_MSG_BUILD:
    case WV_MSG_FORGET:
        wv_client_ask_catalog(client, event);
        break;
    case WV_MSG_TEMPLATES:
        req.head.type = WV_ROLE_TEMPLATES;
        wv_client_ask(client, event->stream, event->type, &req, 0);
        break;
    default:
        handle_session(client, event);
    }
    wv_fd_drop(&event->fd);
}

/* --- the connection ---------------------------------------------------------- */

static void flush(struct wv_client *client)
{
    struct wv_err err;
    int rc;

    if (client->dead)
        return;
    rc = wv_chan_write(&client->chan, client->sock.fd, &err);
    if (rc == 1 && client->listing != 0) {
        list_sessions(client);
        rc = wv_chan_write(&client->chan, client->sock.fd, &err);
    }
    if (rc < 0) {
        drop(client);
    } else if (client->writing != (rc == 0)) {
        client->writing = rc == 0;
        wv_watch_want(client->super, &client->sock,
                      EPOLLIN | (rc == 0 ? EPOLLOUT : 0u));
    }
}

static void on_client(struct wv_supervisor *super, void *owner, uint32_t events)
{
    struct wv_client *client = owner;
    struct wv_event event;
    struct wv_err err;
    int rc = 1, n = 0, hangup;

    (void)super;
    hangup = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 &&
             wv_chan_read(&client->chan, client->sock.fd, &err) < 0;
    while (!client->dead && n++ < WV_TURN_FRAMES &&
           (rc = wv_chan_next(&client->chan, &event, &err)) > 0)
        handle(client, &event);
    client->more = rc > 0;
    if (rc < 0 || (hangup && rc == 0))
        drop(client);
}

/* Messages that were read, but left for the sake of others. 1: there are more still. */
int wv_clients_go_on(struct wv_supervisor *super)
{
    int more = 0;

    for (struct wv_client *c = super->clients; c != NULL; c = c->next) {
        if (!c->dead && c->more)
            on_client(super, c, EPOLLIN);
        more |= !c->dead && c->more;
    }
    return more;
}

void wv_clients_flush(struct wv_supervisor *super, int wait_ms)
{
    for (struct wv_client *c = super->clients; c != NULL; c = c->next) {
        struct pollfd polled = {.fd = c->sock.fd, .events = POLLOUT};

        flush(c);
        while (wait_ms > 0 && !c->dead && c->writing && poll(&polled, 1, wait_ms) > 0)
            flush(c);
    }
}

void wv_clients_bury(struct wv_supervisor *super)
{
    struct wv_client **at = &super->clients;

    while (*at != NULL) {
        struct wv_client *client = *at;

        if (!client->dead) {
            at = &client->next;
            continue;
        }
        *at = client->next;
        wv_chan_fini(&client->chan);
        free(client);
    }
}

int wv_client_new(struct wv_supervisor *super, int sock, int embedded,
                  struct wv_err *err)
{
    struct wv_client *client = calloc(1, sizeof *client);
    struct wv_msg_HELLO hi = {.version = WV_PROTOCOL_VERSION,
                              .build = wv_str(WV_BUILD)};
    int rc;

    if (client == NULL) {
        close(sock);
        return wv_fail(err, WV_ECAPACITY, "supervisor", "no memory for a client");
    }
    wv_chan_init(&client->chan, WV_SUPERVISOR);
    client->super = super;
    client->embedded = embedded != 0;
    client->sock = (struct wv_watch){.fd = sock, .ready = on_client, .owner = client};
    client->host = (struct wv_watch){.fd = -1, .ready = on_host_gone, .owner = client};
    client->next = super->clients;
    super->clients = client;
    rc = wv_watch_add(super, &client->sock, EPOLLIN, err);
    if (rc < 0) {
        drop(client);
        return rc;
    }
    wv_client_send(client, 0, WV_MSG_HELLO, &hi);
    if (super->node_known)
        send_node(client);
    return 0;
}
