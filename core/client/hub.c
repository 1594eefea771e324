/* hub.c - many peers, one epoll set
 *
 * Peers and hub point at each other without owning each other: whichever goes first
 * takes itself out of the other.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/peer.h"

#define BATCH 64

int wv_hub_open(struct wv_hub *hub, struct wv_err *err)
{
    hub->fd = epoll_create1(EPOLL_CLOEXEC);
    if (hub->fd < 0)
        return wv_fail_errno(err, "hub", "epoll_create");
    hub->pid = getpid();
    return 0;
}

int wv_hub_ours(const struct wv_hub *hub)
{
    return hub->fd >= 0 && hub->pid == getpid();
}

void wv_hub_close(struct wv_hub *hub)
{
    wv_fd_drop(
        &hub->fd); /* first: with it go all registrations, and none of a copy's */
    while (hub->first != NULL)
        wv_hub_remove(hub->first);
}

/* Make the epoll set watch what the peer waits for. */
static int watch(struct wv_peer *peer, uint8_t wants)
{
    struct epoll_event event = {.events = wants, .data.ptr = peer};
    int op = peer->watched == 0 ? EPOLL_CTL_ADD
             : wants == 0       ? EPOLL_CTL_DEL
                                : EPOLL_CTL_MOD;

    if (wants == peer->watched)
        return 0;
    if (epoll_ctl(peer->hub->fd, op, peer->fd, &event) < 0)
        return -1;
    peer->watched = wants;
    return 0;
}

int wv_hub_add(struct wv_hub *hub, struct wv_peer *peer, struct wv_err *err)
{
    if (peer->hub == hub)
        return 0;
    wv_hub_remove(peer);
    peer->hub = hub;
    if (watch(peer, wv_peer_wants(peer)) < 0) {
        peer->hub = NULL;
        return wv_fail_errno(err, "hub", "watching a channel");
    }
    peer->prev = NULL;
    peer->next = hub->first;
    if (hub->first != NULL)
        hub->first->prev = peer;
    hub->first = peer;
    wv_hub_note(peer);
    return 0;
}

void wv_hub_remove(struct wv_peer *peer)
{
    struct wv_hub *hub = peer->hub;

    if (hub == NULL)
        return;
    if (wv_hub_ours(hub))
        watch(peer, 0);
    hub->ready -= peer->counted;
    if (peer->prev != NULL)
        peer->prev->next = peer->next;
    else
        hub->first = peer->next;
    if (peer->next != NULL)
        peer->next->prev = peer->prev;
    peer->hub = NULL;
    peer->prev = peer->next = NULL;
    peer->counted = 0;
    peer->watched = 0;
}

void wv_hub_note(struct wv_peer *peer)
{
    uint8_t busy = (uint8_t)wv_peer_busy(peer);

    if (peer->hub == NULL)
        return;
    watch(peer, wv_peer_wants(peer));
    peer->hub->ready += busy;
    peer->hub->ready -= peer->counted;
    peer->counted = busy;
}

int wv_hub_wait(struct wv_hub *hub, int timeout_ms, struct wv_err *err)
{
    struct epoll_event events[BATCH];
    int n = epoll_wait(hub->fd, events, BATCH, hub->ready > 0 ? 0 : timeout_ms);

    if (n < 0 && errno != EINTR)
        return wv_fail_errno(err, "hub", "waiting");
    for (int i = 0; i < n; i++)
        wv_peer_pump(events[i].data.ptr);
    /* Those whose turn was over go on without their socket being ready. */
    if (hub->ready > 0)
        for (struct wv_peer *peer = hub->first; peer != NULL; peer = peer->next)
            if (peer->more)
                wv_peer_pump(peer);
    return (int)hub->ready;
}
