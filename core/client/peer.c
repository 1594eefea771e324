/* peer.c - the host's end of a connection
 *
 * SPDX-License-Identifier: MIT */
#include "client/peer.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "build_id.h"

int wv_peer_init(struct wv_peer *peer, enum wv_side side, struct wv_err *err)
{
    peer->chan = malloc(sizeof *peer->chan);
    if (peer->chan == NULL)
        return wv_fail(err, WV_ELIMIT, "channel", "no memory for a channel");
    wv_chan_init(peer->chan, side);
    peer->pid = getpid();
    return 0;
}

int wv_peer_hello(struct wv_peer *peer, int fd, struct wv_err *err)
{
    struct wv_msg_HELLO hello = {
        .version = WV_PROTOCOL_VERSION,
        .build = wv_str(WV_BUILD),
    };

    return wv_chan_send(peer->chan, 0, WV_MSG_HELLO, &hello, fd, err);
}

int wv_peer_ours(const struct wv_peer *peer)
{
    return peer->fd >= 0 && peer->pid == getpid();
}

static void forget_event(struct wv_peer *peer)
{
    if (peer->have)
        wv_fd_drop(&peer->event.fd);
    peer->have = 0;
}

static void flush(struct wv_peer *peer)
{
    if (!peer->mute && wv_chan_write(peer->chan, peer->fd, NULL) < 0)
        peer->mute = 1; /* reading will find out why */
}

void wv_peer_close(struct wv_peer *peer)
{
    if (wv_peer_ours(peer))
        flush(peer);
    wv_hub_remove(peer);
    forget_event(peer);
    peer->more = 0;
    wv_fd_drop(&peer->fd);
    if (peer->chan != NULL)
        wv_chan_fini(peer->chan);
    free(peer->chan);
    peer->chan = NULL;
}

/* How it ended. What has arrived before can still be taken, unless the peer broke a
 * rule. */
static void ended(struct wv_peer *peer, const struct wv_err *why)
{
    if (peer->why.code == 0)
        peer->why = *why;
}

/* The first message of a peer says what it speaks. */
static int greeting_ok(struct wv_peer *peer, struct wv_err *err)
{
    const struct wv_msg_HELLO *hello = &peer->event.msg.HELLO;

    wv_fd_drop(&peer->event.fd); /* none belongs to it */
    if (hello->version == WV_PROTOCOL_VERSION)
        return 0;
    peer->chan->dead = 1;
    return wv_fail(err, WV_EPROTOCOL, "hello",
                   "the other side speaks version %u, not %u", hello->version,
                   WV_PROTOCOL_VERSION);
}

static void keep_output(struct wv_peer *peer)
{
    const struct wv_msg_OUTPUT *output = &peer->event.msg.OUTPUT;

    wv_keep_output(peer->event.user, output->source, output->offset, output->data.ptr,
                   output->data.len);
    wv_chan_consumed(peer->chan, peer->event.stream, output->data.len);
}

/* Take messages until one is for the caller or the turn is over. */
static void advance(struct wv_peer *peer)
{
    struct wv_err err;
    int rc = 1;

    if (peer->have || peer->chan->dead)
        return;
    peer->more = 0;
    for (int frames = 0; rc > 0 && !peer->have; frames++) {
        if (frames == WV_TURN_FRAMES) {
            peer->more = 1;
            return;
        }
        rc = wv_chan_next(peer->chan, &peer->event, &err);
        if (rc > 0 && peer->event.type == WV_MSG_HELLO)
            rc = greeting_ok(peer, &err) < 0 ? -1 : 1;
        if (rc > 0 && peer->event.type == WV_MSG_OUTPUT && peer->event.user != NULL)
            keep_output(peer);
        else if (rc > 0)
            peer->have = 1;
    }
    if (rc < 0)
        ended(peer, &err);
}

void wv_peer_flush(struct wv_peer *peer)
{
    flush(peer);
    wv_hub_note(peer);
}

void wv_peer_pump(struct wv_peer *peer)
{
    struct wv_err err;

    advance(peer);
    if (!peer->have && !peer->more && peer->why.code == 0) {
        if (wv_chan_read(peer->chan, peer->fd, &err) < 0)
            ended(peer, &err);
        advance(peer);
    }
    wv_peer_flush(peer);
}

int wv_peer_peek(struct wv_peer *peer)
{
    if (peer->have)
        return 1;
    advance(peer);
    /* What was kept has earned credit. */
    wv_peer_flush(peer);
    if (peer->have)
        return 1;
    if (peer->more || peer->why.code == 0)
        return 0;
    peer->told = 1;
    wv_hub_note(peer);
    return peer->why.code;
}

void wv_peer_took(struct wv_peer *peer)
{
    forget_event(peer);
    advance(peer);
    wv_peer_flush(peer);
}

int wv_peer_collect(struct wv_peer *peer, uint32_t id, struct wv_keep *keep)
{
    struct wv_stream *stream = wv_chan_stream(peer->chan, id);

    if (stream == NULL)
        return WV_ECLOSED;
    stream->user = keep;
    if (peer->have && peer->event.type == WV_MSG_OUTPUT && peer->event.stream == id) {
        peer->event.user = keep;
        keep_output(peer);
        wv_peer_took(peer);
    }
    return 0;
}

uint8_t wv_peer_wants(const struct wv_peer *peer)
{
    size_t n;
    int fd;

    if (peer->why.code != 0)
        return 0;
    return (
        uint8_t)(EPOLLIN |
                 (!peer->mute && wv_chan_pending(peer->chan, &n, &fd) ? EPOLLOUT : 0));
}

int wv_peer_busy(const struct wv_peer *peer)
{
    return peer->have || peer->more || (peer->why.code != 0 && !peer->told);
}
