/* requests.c - what the host asks of processes that exist
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "guest/follow.h"

/* A PROCESSES stream: what has an id above `after` is still to come. */
struct wv_listing {
    struct wv_listing *next;
    uint32_t stream, after;
    uint64_t sent;
};

static void refuse(struct wv_conn *conn, uint32_t stream, int code, const char *field,
                   const char *why, const char *reason)
{
    struct wv_err err;

    wv_fail(&err, code, "process", "%s", why);
    snprintf(err.field, sizeof err.field, "%s", field);
    wv_conn_error(conn, stream, &err, reason);
}

static struct wv_process *find(struct wv_conn *conn, uint32_t stream, uint32_t id)
{
    struct wv_process *p = wv_process_find(conn->agent, id);

    if (p == NULL)
        refuse(conn, stream, WV_ENOT_FOUND, "id", "no such process", NULL);
    return p;
}

static void answer_ok(struct wv_conn *conn, uint32_t stream)
{
    wv_conn_send(conn, stream, WV_MSG_OK, &(struct wv_msg_OK){0}, -1);
}

/* --- streams -------------------------------------------------------------------- */

/* The newest of that tag, running ones first. */
static struct wv_process *find_tag(struct wv_agent *agent, struct wv_str tag)
{
    struct wv_process *best = NULL;

    for (struct wv_process *p = agent->processes; p != NULL; p = p->next)
        if (strlen(p->tag) == tag.len && memcmp(p->tag, tag.ptr, tag.len) == 0 &&
            (best == NULL || p->state != WV_PROCESS_ENDED ||
             best->state == WV_PROCESS_ENDED))
            best = p;
    return best;
}

static void attach(struct wv_conn *conn, uint32_t stream,
                   const struct wv_msg_ATTACH *msg)
{
    struct wv_process *p;
    struct wv_err err;

    p = msg->tag.len > 0 ? find_tag(conn->agent, msg->tag)
                         : wv_process_find(conn->agent, msg->id);
    if (p == NULL) {
        refuse(conn, stream, WV_ENOT_FOUND, msg->tag.len > 0 ? "tag" : "id",
               "no such process", NULL);
        return;
    }
    if (wv_follow(p, conn, stream, WV_MSG_ATTACH, &err) == NULL)
        wv_conn_error(conn, stream, &err, NULL);
    else if (p->state != WV_PROCESS_STARTING)
        wv_follow_started(p);
}

static void follow(struct wv_conn *conn, uint32_t stream,
                   const struct wv_msg_FOLLOW *msg)
{
    struct wv_process *p = find(conn, stream, msg->id);
    struct wv_follower *f;
    struct wv_err err;

    if (p == NULL)
        return;
    f = wv_follow(p, conn, stream, WV_MSG_FOLLOW, &err);
    if (f == NULL) {
        wv_conn_error(conn, stream, &err, NULL);
        return;
    }
    f->output = 1;
    f->lossless = msg->lossless != 0;
    f->at = msg->from;
}

/* --- requests ------------------------------------------------------------------- */

static void send_signal(struct wv_conn *conn, uint32_t stream,
                        const struct wv_msg_SIGNAL *msg)
{
    struct wv_process *p = find(conn, stream, msg->id);
    struct wv_order order = {
        .kind = WV_ORDER_SIGNAL,
        .number = msg->number,
        .to = msg->to != 0 ? msg->to : WV_TO_GROUP,
    };

    if (p == NULL)
        return;
    if (msg->number == 0 || msg->number > 64 || msg->to > WV_TO_TREE) {
        refuse(conn, stream, WV_EINVALID, "number", "no such signal", NULL);
    } else if (p->parent == NULL || p->tree_gone ||
               (p->leader_ended && msg->to == WV_TO_LEADER)) {
        refuse(conn, stream, WV_ENOT_FOUND, "id", "the process has ended", "ended");
    } else {
        wv_parent_order(p->parent, &order);
        answer_ok(conn, stream);
    }
}

static void kill_process(struct wv_conn *conn, uint32_t stream,
                         const struct wv_msg_KILL *msg)
{
    struct wv_process *p = find(conn, stream, msg->id);

    if (p == NULL)
        return;
    /* What has ended is as dead as was asked for; its background processes die now. */
    if (p->parent != NULL)
        wv_process_kill(p, WV_CAUSE_KILLED,
                        msg->reason != WV_REASON_NONE ? msg->reason : WV_REASON_OWNER,
                        msg->grace_ms);
    answer_ok(conn, stream);
}

static void resize(struct wv_process *p, const struct wv_msg_RESIZE *msg)
{
    struct winsize size = {
        .ws_col = (unsigned short)msg->cols,
        .ws_row = (unsigned short)msg->rows,
    };

    if ((p->flags & WV_START_PTY) != 0 && p->out[0].watch.fd >= 0)
        ioctl(p->out[0].watch.fd, TIOCSWINSZ, &size);
}

/* --- listing -------------------------------------------------------------------- */

static int send_process(struct wv_conn *conn, uint32_t stream,
                        const struct wv_process *p)
{
    struct wv_msg_PROCESS msg = {
        .id = p->id,
        .pid = (uint32_t)p->pid,
        .state = p->state == WV_PROCESS_ENDED ? WV_STATE_CLOSED : WV_STATE_RUNNING,
        .started_ms = p->started_ms,
        .bytes = p->log.total,
        .tag = wv_str(p->tag),
        .user = wv_str(p->user),
        .cwd = wv_str(p->cwd),
        .argv = {(const char *)p->argv, p->argv_len, p->argv_count},
    };

    return wv_conn_send(conn, stream, WV_MSG_PROCESS, &msg, -1);
}

/* 1: it is at its end. */
static int list_some(struct wv_conn *conn, struct wv_listing *l)
{
    struct wv_msg_END end = {0};

    for (const struct wv_process *p = conn->agent->processes; p != NULL; p = p->next) {
        if (p->id <= l->after)
            continue;
        /* Far below the queue's bound, so that answers always find room. */
        if (wv_buf_len(&conn->chan.out) > WV_OUT_MAX / 2 ||
            send_process(conn, l->stream, p) < 0)
            return conn->broken;
        l->after = p->id;
        l->sent++;
    }
    end.value = l->sent;
    return wv_conn_send(conn, l->stream, WV_MSG_END, &end, -1) != WV_EAGAIN;
}

void wv_process_list_more(struct wv_conn *conn)
{
    for (struct wv_listing **link = &conn->listings; *link != NULL;) {
        struct wv_listing *l = *link;

        if (!list_some(conn, l)) {
            link = &l->next;
            continue;
        }
        *link = l->next;
        free(l);
    }
}

void wv_process_list_drop(struct wv_conn *conn, uint32_t stream)
{
    for (struct wv_listing **link = &conn->listings; *link != NULL;) {
        struct wv_listing *l = *link;

        if (stream != 0 && l->stream != stream) {
            link = &l->next;
            continue;
        }
        *link = l->next;
        free(l);
    }
}

static void list(struct wv_conn *conn, uint32_t stream)
{
    struct wv_listing *l = calloc(1, sizeof *l);

    if (l == NULL) {
        refuse(conn, stream, WV_ELIMIT, "", "out of memory", NULL);
        return;
    }
    l->stream = stream;
    l->next = conn->listings;
    conn->listings = l;
}

void wv_process_handle(struct wv_conn *conn, const struct wv_event *event)
{
    struct wv_follower *f = event->user;

    switch (event->type) {
    case WV_MSG_STDIN:
        wv_input_add(f->process, f, event->msg.STDIN.data);
        break;
    case WV_MSG_STDIN_END:
        wv_input_end(f->process);
        break;
    case WV_MSG_RESIZE:
        resize(f->process, &event->msg.RESIZE);
        break;
    case WV_MSG_ATTACH:
        attach(conn, event->stream, &event->msg.ATTACH);
        break;
    case WV_MSG_FOLLOW:
        follow(conn, event->stream, &event->msg.FOLLOW);
        break;
    case WV_MSG_SIGNAL:
        send_signal(conn, event->stream, &event->msg.SIGNAL);
        break;
    case WV_MSG_KILL:
        kill_process(conn, event->stream, &event->msg.KILL);
        break;
    case WV_MSG_PROCESSES:
        list(conn, event->stream);
        break;
    default:
        break;
    }
}
