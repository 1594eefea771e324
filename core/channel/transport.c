/* transport.c - move a chan's bytes over a non-blocking stream socket
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "channel/rules.h"

/* Is a descriptor number left? When the kernel finds none it has read the bytes already and
 * says so with them; better to let it drop the descriptor and keep the connection. */
static int has_room(int sock)
{
    int spare = fcntl(sock, F_DUPFD_CLOEXEC, 0);

    if (spare >= 0)
        close(spare);
    return spare >= 0;
}

/* One read, with room for a descriptor only where one may come: otherwise the kernel
 * drops what a peer passes, and our table cannot fill up. */
static ssize_t read_some(struct wv_chan *chan, int sock, uint8_t *to, size_t room,
                         struct wv_err *err)
{
    int fd = -1;
    size_t nfds = 1;
    ssize_t n;

    if (!wv_chan_wants_fd(chan) || !has_room(sock)) {
        do {
            n = recv(sock, to, room, 0);
        } while (n < 0 && errno == EINTR);
        return n < 0 ? wv_fail_errno(err, "receive", "receiving") : n;
    }
    n = wv_fd_recv(sock, to, room, &fd, &nfds, err);
    if (n >= 0 && nfds > 0 && wv_chan_give_fd(chan, fd) < 0)
        return wv_fail(err, WV_EPROTOCOL, "receive", "a descriptor nobody asked for");
    return n;
}

int wv_chan_read(struct wv_chan *chan, int sock, struct wv_err *err)
{
    int got = 0;

    for (;;) {
        size_t room;
        uint8_t *to = wv_chan_space(chan, &room);
        ssize_t n;

        if (to == NULL)
            return got;
        n = read_some(chan, sock, to, room, err);
        if (n == WV_EAGAIN)
            return got;
        if (n == 0)
            return got ? got : wv_fail(err, WV_ELOST, "receive", "the other side is gone");
        if (n < 0)
            return (int)n;
        wv_chan_filled(chan, (size_t)n);
        got = 1;
        if ((size_t)n < room)
            return got;
    }
}

#define FIXED_MAX 64u /* bytes of a DATA message before its tail, header included */

int wv_chan_send_from(struct wv_chan *chan, int sock, uint32_t id, uint8_t type,
                      const void *msg, struct wv_err *err)
{
    const struct wv_msg_def *def = wv_msg_def(type);
    struct wv_stream *stream = wv_chan_stream(chan, id);
    const struct wv_field *tail = &def->fields[def->nfields - 1];
    uint32_t len = wv_rule_data_len(def, msg), fixed;
    uint8_t head[FIXED_MAX];
    union wv_msg bare;
    struct wv_str data;
    struct iovec iov[2];
    struct msghdr out = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n;

    if (wv_buf_len(&chan->out) > 0 || chan->dead || stream == NULL ||
        len > stream->credit || !wv_rule_allows(def, stream))
        return wv_chan_send(chan, id, type, msg, -1, err);
    memcpy(&bare, msg, def->size);
    memcpy(&data, (const char *)msg + tail->offset, sizeof data);
    ((struct wv_str *)(void *)((char *)&bare + tail->offset))->len = 0;
    fixed = (uint32_t)wv_msg_size(type, &bare, err);
    if (fixed > FIXED_MAX - WV_FRAME_HEAD || fixed + len > WV_FRAME_MAX)
        return wv_chan_send(chan, id, type, msg, -1, err);
    wv_frame_put(head, &(struct wv_frame){.len = fixed + len, .type = type, .stream = id});
    wv_msg_put(type, &bare, head + WV_FRAME_HEAD);
    fixed += WV_FRAME_HEAD;
    iov[0] = (struct iovec){head, fixed};
    iov[1] = (struct iovec){(void *)(uintptr_t)data.ptr, len};
    do {
        n = sendmsg(sock, &out, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return wv_fail_errno(err, "send", "sending %u bytes", fixed + len);
    if (n < (ssize_t)fixed)
        wv_chan_queue(chan, head + (n > 0 ? n : 0), fixed - (size_t)(n > 0 ? n : 0));
    if (n < (ssize_t)(fixed + len)) {
        size_t gone = n > (ssize_t)fixed ? (size_t)n - fixed : 0;

        wv_chan_queue(chan, data.ptr + gone, len - gone);
    }
    stream->credit -= len;
    wv_rule_move(chan, stream, def->next);
    return 0;
}

int wv_chan_write(struct wv_chan *chan, int sock, struct wv_err *err)
{
    for (;;) {
        size_t len;
        int fd;
        const uint8_t *data = wv_chan_pending(chan, &len, &fd);
        ssize_t n;

        if (data == NULL)
            return 1;
        n = wv_fd_send(sock, data, len, &fd, fd >= 0, err);
        if (n == WV_EAGAIN)
            return 0;
        if (n < 0)
            return (int)n;
        wv_chan_sent(chan, (size_t)n);
    }
}
