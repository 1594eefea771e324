/* input.c - from STDIN messages into a process's pipe or terminal
 *
 * Bytes wait here under the credit of their streams and go out without blocking: a
 * process that does not read costs its senders their credit, and nobody else anything.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/follow.h"

#define QUEUE_MAX (16u * WV_WINDOW) /* of one process, from however many streams */

struct wv_chunk {
    struct wv_chunk *next;
    struct wv_follower *from; /* NULL: its stream is gone, its bytes still count */
    uint32_t len, done;
    char data[];
};

static void drop_first(struct wv_input *in)
{
    struct wv_chunk *chunk = in->first;

    in->queued -= chunk->len - chunk->done;
    in->first = chunk->next;
    if (in->first == NULL)
        in->last = &in->first;
    free(chunk);
}

static void consumed(const struct wv_follower *from, uint32_t n)
{
    if (from != NULL)
        wv_chan_consumed(&from->conn->chan, from->stream, n);
}

void wv_input_close(struct wv_process *p, int why)
{
    struct wv_input *in = &p->in;

    if (in->watch.fd >= 0) {
        wv_watch_set(p->agent, &in->watch, 0);
        wv_fd_drop(&in->watch.fd);
    }
    while (in->first != NULL) {
        consumed(in->first->from, in->first->len - in->first->done);
        drop_first(in);
    }
    in->gone = why;
    if (why != 0)
        wv_follow_stdin_gone(p);
}

/* The end of input: a closed pipe; a terminal has a character for it. */
static void close_end(struct wv_process *p)
{
    if ((p->flags & WV_START_PTY) == 0) {
        wv_input_close(p, 0);
    } else {
        struct termios mode;
        char eof = 4;

        if (tcgetattr(p->in.watch.fd, &mode) == 0)
            eof = (char)mode.c_cc[VEOF];
        if (write(p->in.watch.fd, &eof, 1) < 0 && errno == EAGAIN)
            return;
        wv_watch_set(p->agent, &p->in.watch, 0);
    }
    p->in.end = 0;
}

static void write_out(struct wv_process *p)
{
    struct wv_input *in = &p->in;

    while (in->watch.fd >= 0 && in->first != NULL) {
        struct wv_chunk *chunk = in->first;
        ssize_t n =
            write(in->watch.fd, chunk->data + chunk->done, chunk->len - chunk->done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            wv_input_close(p, errno);
            return;
        }
        if (n <= 0)
            break;
        chunk->done += (uint32_t)n;
        in->queued -= (size_t)n;
        consumed(chunk->from, (uint32_t)n);
        if (chunk->done == chunk->len)
            drop_first(in);
    }
    if (in->watch.fd >= 0 && in->first == NULL && in->end)
        close_end(p);
    if (in->watch.fd >= 0 &&
        wv_watch_set(p->agent, &in->watch,
                     in->first != NULL || in->end ? EPOLLOUT : 0) < 0)
        wv_input_close(p, EIO);
}

static void ready(struct wv_watch *watch, uint32_t events)
{
    struct wv_input *in = WV_OUTER(watch, struct wv_input, watch);

    (void)events;
    write_out(WV_OUTER(in, struct wv_process, in));
}

void wv_input_init(struct wv_process *p, int fd)
{
    p->in = (struct wv_input){
        .watch = {.ready = ready, .fd = fd}
    };
    p->in.last = &p->in.first;
}

void wv_input_add(struct wv_process *p, struct wv_follower *from, struct wv_str data)
{
    struct wv_input *in = &p->in;
    struct wv_chunk *chunk = NULL;

    if (in->watch.fd >= 0 && !in->end && in->queued + data.len <= QUEUE_MAX)
        chunk = malloc(sizeof *chunk + data.len);
    if (chunk == NULL) {
        consumed(from, data.len);
        if (in->gone == 0)
            in->gone = EPIPE;
        wv_follow_stdin_gone(p);
        return;
    }
    *chunk = (struct wv_chunk){.from = from, .len = data.len};
    memcpy(chunk->data, data.ptr, data.len);
    *in->last = chunk;
    in->last = &chunk->next;
    in->queued += data.len;
    if (in->first == chunk)
        write_out(p);
}

void wv_input_end(struct wv_process *p)
{
    if (p->in.watch.fd < 0)
        return;
    p->in.end = 1;
    write_out(p);
}

void wv_input_forget(struct wv_process *p, const struct wv_follower *from)
{
    for (struct wv_chunk *chunk = p->in.first; chunk != NULL; chunk = chunk->next)
        if (chunk->from == from)
            chunk->from = NULL;
}
