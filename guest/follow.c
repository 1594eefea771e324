/* follow.c - streams that wait for a process
 *
 * SPDX-License-Identifier: MIT */
#include "guest/follow.h"

#include <errno.h>
#include <stdlib.h>

/* Whole pages that fit one frame, as every message of a server must. */
#define PIECE 61440u

struct wv_follower *wv_follow(struct wv_process *p, struct wv_conn *conn,
                              uint32_t stream, uint8_t opener, struct wv_err *err)
{
    struct wv_follower *f = calloc(1, sizeof *f);

    if (f == NULL) {
        wv_fail_errno(err, "follow", "allocating");
        return NULL;
    }
    f->process = p;
    f->conn = conn;
    f->stream = stream;
    f->opener = opener;
    f->until = p->state == WV_PROCESS_ENDED ? p->log.total : UINT64_MAX;
    f->next = p->followers;
    p->followers = f;
    f->next_of_conn = conn->followers;
    conn->followers = f;
    wv_chan_stream(&conn->chan, stream)->user = f;
    return f;
}

/* Its stream is gone or about to go. */
static void unfollow(struct wv_follower *f)
{
    struct wv_follower **link = &f->process->followers;

    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    for (link = &f->conn->followers; *link != f;)
        link = &(*link)->next_of_conn;
    *link = f->next_of_conn;
    wv_input_forget(f->process, f);
    if (f->lossless)
        wv_output_resume(f->process);
    free(f);
}

/* --- output --------------------------------------------------------------------- */

static int send_piece(struct wv_follower *f)
{
    uint32_t may = wv_chan_may_send(&f->conn->chan, f->stream);
    struct wv_msg_OUTPUT msg = {0};
    const uint8_t *data = NULL;
    size_t n;

    if (may == 0)
        return 0;
    n = wv_log_peek(&f->process->log, &f->at, &msg.source, &data);
    if (f->at >= f->until)
        return 0;
    if (n > f->until - f->at)
        n = (size_t)(f->until - f->at);
    if (n > PIECE)
        n = PIECE;
    if (n > may)
        n = may;
    if (n == 0)
        return 0;
    msg.offset = f->at;
    msg.data = (struct wv_str){(const char *)data, (uint32_t)n};
    if (wv_conn_send_from(f->conn, f->stream, WV_MSG_OUTPUT, &msg) < 0)
        return 0;
    f->at += n;
    return 1;
}

static void send_end(struct wv_follower *f)
{
    struct wv_msg_END end = {.value = f->process->log.total};
    int rc = f->opener == WV_MSG_FOLLOW
                 ? wv_conn_send(f->conn, f->stream, WV_MSG_END, &end, -1)
                 : wv_conn_send(f->conn, f->stream, WV_MSG_EXIT, &f->process->exit, -1);

    if (rc != WV_EAGAIN)
        unfollow(f);
}

void wv_follow_pump(struct wv_follower *f)
{
    struct wv_process *p = f->process;
    uint64_t before = f->at;

    if (f->conn->broken || (f->opener != WV_MSG_FOLLOW && !f->live))
        return;
    while (f->output && send_piece(f))
        ;
    if (f->lossless && f->at != before)
        wv_output_resume(p);
    if (p->state == WV_PROCESS_ENDED && (!f->output || f->at >= f->until))
        send_end(f);
}

void wv_follow_pump_process(struct wv_process *p)
{
    for (struct wv_follower *f = p->followers, *next; f != NULL; f = next) {
        next = f->next;
        wv_follow_pump(f);
    }
}

void wv_follow_pump_conn(struct wv_conn *conn)
{
    for (struct wv_follower *f = conn->followers, *next; f != NULL; f = next) {
        next = f->next_of_conn;
        wv_follow_pump(f);
    }
}

uint64_t wv_follow_floor(const struct wv_process *p)
{
    uint64_t floor = UINT64_MAX;

    for (const struct wv_follower *f = p->followers; f != NULL; f = f->next)
        if (f->lossless && f->output && f->at < floor && !f->conn->broken)
            floor = f->at;
    return floor;
}

/* --- what happens to the process ------------------------------------------------ */

void wv_follow_started(struct wv_process *p)
{
    struct wv_msg_STARTED msg = {.id = p->id, .pid = (uint32_t)p->pid};

    for (struct wv_follower *f = p->followers; f != NULL; f = f->next)
        if (f->opener != WV_MSG_FOLLOW && !f->live &&
            wv_conn_send(f->conn, f->stream, WV_MSG_STARTED, &msg, -1) == 0)
            f->live = 1;
    if (p->in.gone != 0)
        wv_follow_stdin_gone(p);
}

void wv_follow_failed(struct wv_process *p, const struct wv_err *err,
                      const char *reason)
{
    while (p->followers != NULL) {
        struct wv_follower *f = p->followers;

        wv_conn_error(f->conn, f->stream, err, reason);
        unfollow(f);
    }
}

void wv_follow_ended(struct wv_process *p)
{
    for (struct wv_follower *f = p->followers; f != NULL; f = f->next)
        f->until = p->log.total;
    wv_follow_pump_process(p);
}

void wv_follow_stdin_gone(struct wv_process *p)
{
    struct wv_msg_STDIN_GONE msg = {.sys = (uint32_t)p->in.gone};

    for (struct wv_follower *f = p->followers; f != NULL; f = f->next)
        if (f->opener != WV_MSG_FOLLOW && f->live && !f->gone_told &&
            wv_conn_send(f->conn, f->stream, WV_MSG_STDIN_GONE, &msg, -1) == 0)
            f->gone_told = 1;
}

/* --- what happens to the stream ------------------------------------------------- */

static void kill_owned(struct wv_process *p)
{
    if (p->state != WV_PROCESS_ENDED && !p->leader_ended)
        wv_process_kill(p, WV_CAUSE_KILLED, WV_REASON_OWNER, 0);
}

void wv_follow_cancel(struct wv_follower *f)
{
    struct wv_msg_END end = {0};

    if (f == NULL)
        return;
    if (f->owner) {
        /* The answer is EXIT, and it need not wait for what nobody reads any more. */
        f->output = 0;
        wv_output_resume(f->process);
        kill_owned(f->process);
        wv_follow_pump(f);
        return;
    }
    end.value = f->at;
    wv_conn_send(f->conn, f->stream, WV_MSG_END, &end, -1);
    unfollow(f);
}

void wv_follow_lost(struct wv_conn *conn)
{
    while (conn->followers != NULL) {
        struct wv_follower *f = conn->followers;
        struct wv_process *p = f->process;
        int owner = f->owner;

        unfollow(f);
        if (owner)
            kill_owned(p);
    }
}
