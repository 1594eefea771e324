/* guard.c - Guard: ends a stream when Lua forgets it; and Fd: a descriptor on its way
 *
 * A guard of a session sends CLOSE, of any other stream CANCEL. It holds its link.
 *
 * SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "lua/bind.h"

struct guard {
    struct wv_link *link;
    uint32_t stream; /* 0: disarmed */
};

void wv_guard_push(lua_State *L, int link, uint32_t stream)
{
    static const struct guard closed;
    struct guard *guard = wv_ud_new(L, &wv_guard_class, sizeof closed, &closed);

    lua_pushvalue(L, link);
    wv_ud_hold(L, -2);
    guard->link = lua_touserdata(L, link);
    guard->stream = stream;
}

static int guard_close(lua_State *L)
{
    struct guard *guard = wv_ud_check(L, 1, &wv_guard_class);
    uint32_t id = guard->stream;
    struct wv_peer *peer;
    struct wv_stream *stream;
    union wv_msg msg = {.CLOSE = {.reason = WV_REASON_OWNER}};

    guard->stream = 0;
    if (id == 0)
        return 0;
    peer = &guard->link->peer;
    if (!wv_peer_ours(peer) || peer->why.code != 0)
        return 0;
    stream = wv_chan_stream(peer->chan, id);
    if (stream == NULL)
        return 0;
    wv_chan_send(peer->chan, id,
                 stream->opener == WV_MSG_OPEN ? WV_MSG_CLOSE : WV_MSG_CANCEL, &msg, -1,
                 NULL);
    wv_peer_flush(peer);
    return 0;
}

static int guard_disarm(lua_State *L)
{
    struct guard *guard = wv_ud_check(L, 1, &wv_guard_class);

    guard->stream = 0;
    return 0;
}

static const luaL_Reg guard_methods[] = {
    {"disarm", guard_disarm},
    {NULL,     NULL        },
};

const struct wv_class wv_guard_class = {"wovyr.Guard", guard_close, guard_methods};

static int fd_close(lua_State *L)
{
    struct wv_fd *fd = wv_ud_check(L, 1, &wv_fd_class);

    wv_fd_drop(&fd->fd);
    return 0;
}

static int fd_number(lua_State *L)
{
    struct wv_fd *fd = wv_ud_check(L, 1, &wv_fd_class);

    if (fd->fd < 0)
        return wv_push_fail(L, WV_ECLOSED, "channel", "the descriptor is closed");
    lua_pushinteger(L, fd->fd);
    return 1;
}

static const luaL_Reg fd_methods[] = {
    {"number", fd_number},
    {NULL,     NULL     },
};

const struct wv_class wv_fd_class = {"wovyr.Fd", fd_close, fd_methods};
