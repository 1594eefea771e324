/* conn.c - one connection to the agent
 *
 * SPDX-License-Identifier: MIT */
#include "guest/conn.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "build_id.h"
#include "guest/files.h"
#include "guest/follow.h"
#include "guest/process.h"

#define SEND_BUFFER 1048576             /* wanted in the kernel; it may give less */
#define OUT_HIGH (WV_OUT_MAX / 4u * 3u) /* above it, no more requests are taken */
#define TURN_WRITES 4

int wv_conn_send(struct wv_conn *conn, uint32_t stream, uint8_t type, const void *msg,
                 int fd)
{
    int rc = wv_chan_send(&conn->chan, stream, type, msg, fd, NULL);

    if (rc < 0 && rc != WV_EAGAIN)
        conn->broken = 1;
    return rc;
}

int wv_conn_send_from(struct wv_conn *conn, uint32_t stream, uint8_t type, const void *msg)
{
    int rc = wv_chan_send_from(&conn->chan, conn->sock, stream, type, msg, NULL);

    if (rc < 0 && rc != WV_EAGAIN)
        conn->broken = 1;
    return rc;
}

void wv_conn_error(struct wv_conn *conn, uint32_t stream, const struct wv_err *err,
                   const char *reason)
{
    struct wv_msg_ERROR msg = {
        .code = (uint8_t)-err->code,
        .sys = (uint32_t)err->sys,
        .op = wv_str(err->op),
        .field = wv_str(err->field),
        .reason = wv_str(reason != NULL ? reason : ""),
        .message = wv_str(err->msg),
    };

    if (wv_conn_send(conn, stream, WV_MSG_ERROR, &msg, -1) < 0)
        conn->broken = 1;
}

static int write_out(struct wv_conn *conn)
{
    int rc = wv_chan_write(&conn->chan, conn->sock, NULL);

    if (rc < 0)
        conn->broken = 1;
    return rc;
}

/* --- messages in ---------------------------------------------------------------- */

static void hello(struct wv_conn *conn, const struct wv_event *event)
{
    struct wv_err err;

    if (event->msg.HELLO.version == WV_PROTOCOL_VERSION)
        return;
    wv_fail(&err, WV_EUNSUPPORTED, "hello", "protocol version %u, not %u",
            event->msg.HELLO.version, WV_PROTOCOL_VERSION);
    wv_conn_error(conn, 0, &err, "version");
    write_out(conn);
    conn->broken = 1;
}

static void cancel(struct wv_conn *conn, struct wv_event *event)
{
    const struct wv_stream *stream = wv_chan_stream(&conn->chan, event->stream);

    if (stream == NULL)
        return;
    switch (stream->opener) {
    case WV_MSG_START:
    case WV_MSG_ATTACH:
    case WV_MSG_FOLLOW:
        wv_follow_cancel(event->user);
        break;
    case WV_MSG_PROCESSES:
        wv_process_list_drop(conn, event->stream);
        wv_conn_send(conn, event->stream, WV_MSG_END, &(struct wv_msg_END){0}, -1);
        break;
    default:
        wv_files_handle(conn, event);
    }
}

static void dispatch(struct wv_conn *conn, struct wv_event *event)
{
    switch (event->type) {
    case WV_MSG_HELLO:
        hello(conn, event);
        break;
    case WV_MSG_PING: {
        struct wv_msg_PONG pong = {.token = event->msg.PING.token};

        wv_conn_send(conn, 0, WV_MSG_PONG, &pong, -1);
        break;
    }
    case WV_MSG_CREDIT: /* the turn's end sends what it allows */
        break;
    case WV_MSG_CANCEL:
        cancel(conn, event);
        break;
    case WV_MSG_START:
        wv_process_start(conn, event->stream, &event->msg.START);
        break;
    default:
        if (event->type > WV_MSG_START && event->type < WV_MSG_OPEN_FILE)
            wv_process_handle(conn, event);
        else
            wv_files_handle(conn, event);
    }
    if (event->fd >= 0)
        close(event->fd);
}

static int is_full(const struct wv_conn *conn)
{
    return wv_buf_len(&conn->chan.out) > OUT_HIGH;
}

static void take(struct wv_conn *conn)
{
    struct wv_event event;

    conn->more = 1;
    for (int i = 0; i < WV_TURN_FRAMES && !conn->broken && !is_full(conn); i++) {
        int rc = wv_chan_next(&conn->chan, &event, NULL);

        if (rc == 0)
            conn->more = 0;
        if (rc < 0)
            conn->broken = 1;
        if (rc <= 0)
            return;
        dispatch(conn, &event);
    }
}

static void ready(struct wv_watch *watch, uint32_t events)
{
    struct wv_conn *conn = WV_OUTER(watch, struct wv_conn, watch);

    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !is_full(conn) &&
        wv_chan_read(&conn->chan, conn->sock, NULL) < 0)
        conn->broken = 1;
    if (!conn->broken)
        take(conn);
}

/* --- life ----------------------------------------------------------------------- */

int wv_conn_open(struct wv_agent *agent, int sock, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int owned = sock;
    struct wv_msg_HELLO hello_msg = {
        .version = WV_PROTOCOL_VERSION,
        .build = wv_str(WV_BUILD),
    };
    int size = SEND_BUFFER;
    struct wv_conn *conn;

    if (agent->nconns == WV_CONNS_MAX)
        return wv_fail(err, WV_ECAPACITY, "connect", "%u connections", WV_CONNS_MAX);
    if (wv_fd_nonblock(sock) < 0)
        return wv_fail_errno(err, "connect", "setting up a connection");
    conn = malloc(sizeof *conn);
    if (conn == NULL)
        return wv_fail_errno(err, "connect", "allocating");
    memset(conn, 0, offsetof(struct wv_conn, chan));
    setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    conn->agent = agent;
    conn->sock = sock;
    conn->watch = (struct wv_watch){.ready = ready, .fd = sock};
    wv_chan_init(&conn->chan, WV_GUEST);
    if (wv_watch_set(agent, &conn->watch, EPOLLIN) < 0) {
        wv_chan_fini(&conn->chan);
        free(conn);
        return wv_fail_errno(err, "connect", "watching a connection");
    }
    wv_fd_take(&owned);
    conn->next = agent->conns;
    agent->conns = conn;
    agent->nconns++;
    wv_conn_send(conn, 0, WV_MSG_HELLO, &hello_msg, -1);
    /* What was queued before we came is taken in this turn. */
    ready(&conn->watch, EPOLLIN);
    return 0;
}

static void drop(struct wv_conn *conn)
{
    struct wv_agent *agent = conn->agent;

    wv_watch_set(agent, &conn->watch, 0);
    wv_follow_lost(conn);
    wv_process_list_drop(conn, 0);
    wv_files_drop(conn);
    wv_chan_fini(&conn->chan);
    close(conn->sock);
    free(conn);
    agent->nconns--;
}

static void finish_turn(struct wv_conn *conn)
{
    if (conn->more && !is_full(conn))
        take(conn);
    for (int i = 0; i < TURN_WRITES && !conn->broken; i++) {
        wv_process_list_more(conn);
        wv_follow_pump_conn(conn);
        wv_files_more(conn);
        if (wv_buf_len(&conn->chan.out) == 0 || write_out(conn) <= 0)
            return;
    }
    conn->more = 1;
}

int wv_conn_turn(struct wv_agent *agent)
{
    int busy = 0;

    for (struct wv_conn **link = &agent->conns; *link != NULL;) {
        struct wv_conn *conn = *link;
        uint32_t want = 0;

        if (!conn->broken)
            finish_turn(conn);
        if (!is_full(conn))
            want |= EPOLLIN;
        if (wv_buf_len(&conn->chan.out) > 0)
            want |= EPOLLOUT;
        if (conn->broken || wv_watch_set(agent, &conn->watch, want) < 0) {
            *link = conn->next;
            drop(conn);
            continue;
        }
        busy |= conn->more && !is_full(conn);
        link = &conn->next;
    }
    return busy;
}
