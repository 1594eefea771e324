/* output.c - from a process's pipes and terminal into its log
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/follow.h"

#define PIPE_BYTES 262144  /* of a pipe that turned out to be busy */
#define BUSY_READ 32768    /* a read of this much says so */
#define READ_MAX 61440u    /* whole pages, and one OUTPUT */
#define TURN_BYTES 262144u /* then it is somebody else's turn */

void wv_output_close(struct wv_output *out)
{
    if (out->watch.fd < 0)
        return;
    wv_watch_set(out->process->agent, &out->watch, 0);
    wv_fd_drop(&out->watch.fd);
    out->stalled = 0;
}

/* 256 KiB from the start would charge every quiet process for it; the limit for pipes
 * of one user may refuse it, which costs nothing but speed. */
static void grow(struct wv_output *out)
{
    out->grown = 1;
    if (out->source != WV_SOURCE_PTY)
        fcntl(out->watch.fd, F_SETPIPE_SZ, PIPE_BYTES);
}

static void count(struct wv_output *out, size_t n)
{
    struct wv_process *p = out->process;

    wv_log_added(&p->log, out->source, n);
    if (n >= BUSY_READ && !out->grown)
        grow(out);
    if (p->output_max == 0 || p->log.total <= p->output_max ||
        p->state == WV_PROCESS_ENDED)
        return;
    p->exit.limits |= WV_HIT_OUTPUT;
    if ((p->flags & WV_START_KILL_OUTPUT) != 0 && !p->leader_ended)
        wv_process_kill(p, WV_CAUSE_OUTPUT, WV_REASON_NONE, 0);
}

/* 1: something was read and there may be more, 0: not now, or never again. */
static int read_some(struct wv_output *out, size_t *left)
{
    struct wv_process *p = out->process;
    size_t room;
    uint8_t *space;
    ssize_t n;

    if (p->agent->log_bytes > WV_LOG_TOTAL / 16u * 15u)
        wv_process_make_room(p->agent);
    space = wv_log_space(&p->log, out->source, wv_follow_floor(p), &room);
    if (space == NULL) {
        out->stalled = 1;
        wv_watch_set(p->agent, &out->watch, 0);
        return 0;
    }
    if (room > READ_MAX)
        room = READ_MAX;
    do {
        n = read(out->watch.fd, space, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) {
        out->must = 0; /* empty: should the guest have taken bytes out, nobody waits */
        return 0;
    }
    if (n <= 0) { /* a terminal that all have closed says EIO */
        wv_output_close(out);
        return 0;
    }
    count(out, (size_t)n);
    wv_follow_pump_process(p);
    *left = *left > (size_t)n ? *left - (size_t)n : 0;
    return *left > 0 && (size_t)n == room;
}

void wv_output_read(struct wv_output *out)
{
    size_t left = TURN_BYTES;

    while (out->watch.fd >= 0 && read_some(out, &left))
        ;
}

void wv_output_resume(struct wv_process *p)
{
    for (int i = 0; i < 2; i++) {
        struct wv_output *out = &p->out[i];

        if (out->watch.fd < 0 || !out->stalled)
            continue;
        out->stalled = 0;
        if (wv_watch_set(p->agent, &out->watch, EPOLLIN) < 0)
            wv_output_close(out);
    }
}

static void ready(struct wv_watch *watch, uint32_t events)
{
    struct wv_output *out = WV_OUTER(watch, struct wv_output, watch);
    struct wv_process *p = out->process;

    /* A pipe that ended without a word needs no memory to read into. */
    if ((events & EPOLLIN) == 0 && out->source != WV_SOURCE_PTY)
        wv_output_close(out);
    else
        wv_output_read(out);
    wv_process_check(p);
}

int wv_output_init(struct wv_process *p, int i, uint8_t source, int fd)
{
    struct wv_output *out = &p->out[i];

    out->process = p;
    out->source = source;
    out->watch = (struct wv_watch){.ready = ready, .fd = fd};
    return fd < 0 ? 0 : wv_watch_set(p->agent, &out->watch, EPOLLIN);
}

/* The guest cannot make this wait for ever: it is what the pipe holds now. */
void wv_output_mark(struct wv_process *p)
{
    for (int i = 0; i < 2; i++) {
        struct wv_output *out = &p->out[i];
        struct pollfd poller = {.fd = out->watch.fd, .events = POLLIN};
        int n = 0;

        if (out->watch.fd < 0)
            continue;
        if (ioctl(out->watch.fd, FIONREAD, &n) < 0 || n < 0)
            n = 0;
        out->must = p->log.count[out->source] + (uint64_t)n;
        if (n > 0 || out->source == WV_SOURCE_PTY)
            wv_output_read(out);
        else if (poll(&poller, 1, 0) == 1 && (poller.revents & POLLIN) == 0)
            wv_output_close(out);
    }
}
