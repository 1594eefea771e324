/* transport.c - move a chan's bytes over a non-blocking stream socket
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "channel/chan.h"

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
