/* peer.h - the host's end of a connection: a chan with its socket, and a hub of many
 *
 * Bytes are read by pump (from a hub, when the socket is ready), events are taken with
 * peek and took. The first event stays in the peer until it is taken, and while it does
 * nothing more is read, because its strings lie in the input. OUTPUT of a stream whose
 * user is a struct wv_keep goes there at once and is no event. What was sent is written
 * at once where the socket takes it, so a message needs nobody to pump afterwards.
 *
 * A peer belongs to the process that opened it. In a forked copy it is closed: nothing
 * is sent, and the epoll set, which both share, is left alone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CLIENT_PEER_H
#define WV_CLIENT_PEER_H

#include <sys/types.h>

#include "channel/chan.h"
#include "client/keep.h"

struct wv_peer {
    int fd;    /* -1: closed */
    pid_t pid; /* whose it is */
    struct wv_chan *chan;
    struct wv_event event; /* the next one, when have */
    struct wv_err why;     /* code: how the connection ended, or 0 */
    uint8_t have;
    uint8_t more;    /* its turn was over before its input was */
    uint8_t mute;    /* writing failed: the peer is gone, its last words may not be */
    uint8_t told;    /* the caller has seen why */
    uint8_t counted; /* in hub->ready */
    uint8_t watched; /* the hub's interest: EPOLLIN, EPOLLOUT or 0 */
    struct wv_hub *hub;
    struct wv_peer *prev, *next; /* in the hub */
};

struct wv_hub {
    int fd; /* epoll; -1: closed */
    pid_t pid;
    struct wv_peer *first;
    unsigned ready; /* peers with something to take */
};

/* Make room for a connection; the socket follows. 0 or WV_ELIMIT. */
int wv_peer_init(struct wv_peer *peer, enum wv_side side, struct wv_err *err);

/* Queue our HELLO; fd (or -1) goes with it and is owned then. */
int wv_peer_hello(struct wv_peer *peer, int fd, struct wv_err *err);

/* Send what is queued and still fits, then close. Any state, any number of times. */
void wv_peer_close(struct wv_peer *peer);

/* 1: open, and this process's. */
int wv_peer_ours(const struct wv_peer *peer);

/* Read, keep, write; never blocks. */
void wv_peer_pump(struct wv_peer *peer);

/* Write what is queued, as far as it goes. */
void wv_peer_flush(struct wv_peer *peer);

/* 1: peer->event is the next; 0: nothing now; negative: it ended, see why. */
int wv_peer_peek(struct wv_peer *peer);
void wv_peer_took(struct wv_peer *peer);

/* The stream's OUTPUT goes to keep from now on, the one at hand included. */
int wv_peer_collect(struct wv_peer *peer, uint32_t stream, struct wv_keep *keep);

/* What to wait for: EPOLLIN, EPOLLOUT, both or 0. */
uint8_t wv_peer_wants(const struct wv_peer *peer);

/* 1: there is something to take, or to find by another pump, without waiting. */
int wv_peer_busy(const struct wv_peer *peer);

int wv_hub_open(struct wv_hub *hub, struct wv_err *err);
void wv_hub_close(struct wv_hub *hub);
int wv_hub_ours(const struct wv_hub *hub);
int wv_hub_add(struct wv_hub *hub, struct wv_peer *peer, struct wv_err *err);
void wv_hub_remove(struct wv_peer *peer);

/* Bring the hub's view of a peer up to date; the peer's own functions do it. */
void wv_hub_note(struct wv_peer *peer);

/* Wait until something is ready, at most timeout_ms (-1: for ever), and pump it.
 * Returns how many peers have something to take. A signal ends the wait: the host wants
 * to see it. */
int wv_hub_wait(struct wv_hub *hub, int timeout_ms, struct wv_err *err);

#endif
