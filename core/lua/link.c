/* link.c - Link: a connection to a supervisor or a guest agent
 *
 * A link's hold table keeps the Collector of each collected stream, by stream id: the
 * chan knows only its address, so it has to live as long as the stream.
 *
 * SPDX-License-Identifier: MIT */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/spawn.h"
#include "lua/bind.h"

static struct wv_link *new_link(lua_State *L)
{
    static const struct wv_link closed = {.peer.fd = -1};
    struct wv_link *link = wv_ud_new(L, &wv_link_class, sizeof closed, &closed);

    lua_newtable(L);
    wv_sethold(L, -2);
    return link;
}

static struct wv_peer *check_peer(lua_State *L)
{
    struct wv_link *link = wv_ud_check(L, 1, &wv_link_class);

    return &link->peer;
}

static uint32_t check_stream(lua_State *L, int arg)
{
    return (uint32_t)wv_check_u64(L, arg, INT32_MAX);
}

static int push_closed(lua_State *L)
{
    return wv_push_fail(L, WV_ECLOSED, "channel", "the link is closed");
}

/* For sending: 0, or what was pushed because the connection is over. */
static int push_over(lua_State *L, struct wv_peer *peer)
{
    if (!wv_peer_ours(peer))
        return push_closed(L);
    return peer->why.code != 0 ? wv_push_err(L, &peer->why) : 0;
}

static const struct wv_msg_def *check_message(lua_State *L, int arg)
{
    const char *name = luaL_checkstring(L, arg);
    const struct wv_msg_def *def = wv_msg_named(name);

    if (def == NULL)
        luaL_argerror(L, arg, lua_pushfstring(L, "no message is called '%s'", name));
    return def;
}

/* core.start { path = nil } */
int wv_core_start(lua_State *L)
{
    const char *path = NULL;
    struct wv_link *link;
    struct wv_image image;
    struct wv_err err;
    int self, rc;

    lua_settop(L, 1);
    if (!lua_isnil(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_pushstring(L, "path");
        lua_rawget(L, 1);
        if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
            return luaL_argerror(L, 1, "path: a string expected");
        path = lua_tostring(L, -1);
    }
    link = new_link(L);
    if (wv_peer_init(&link->peer, WV_CLIENT, &err) < 0 ||
        wv_image_open(&image, path, &err) < 0)
        return wv_push_err(L, &err);
    rc = wv_spawn(&image, &link->peer.fd, &err);
    wv_image_drop(&image);
    if (rc < 0)
        return wv_push_err(L, &err);

    /* Our pidfd tells the supervisor of our death even while a forked copy of us holds
     * the socket. Where the kernel refuses it, the end of the connection has to do. */
    self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (wv_peer_hello(&link->peer, self, &err) < 0) {
        wv_fd_drop(&self);
        return wv_push_err(L, &err);
    }
    wv_peer_flush(&link->peer);
    return 1;
}

/* core.channel() -> Link, Fd */
int wv_core_channel(lua_State *L)
{
    static const struct wv_fd closed = {.fd = -1};
    struct wv_link *link = new_link(L);
    struct wv_fd *theirs = wv_ud_new(L, &wv_fd_class, sizeof closed, &closed);
    struct wv_err err;
    int pair[2];

    if (wv_peer_init(&link->peer, WV_HOST, &err) < 0)
        return wv_push_err(L, &err);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        wv_fail_errno(&err, "channel", "making a socket pair");
        return wv_push_err(L, &err);
    }
    link->peer.fd = pair[0];
    theirs->fd = pair[1];
    if (wv_fd_nonblock(pair[0]) < 0 || wv_peer_hello(&link->peer, -1, &err) < 0)
        return wv_push_fail(L, WV_ESYSTEM, "channel", "preparing a socket pair");
    return 2;
}

/* link:open(name, fields, fd) -> stream */
static int link_open(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    const struct wv_msg_def *def = check_message(L, 2);
    struct wv_fd *fd = NULL;
    union wv_msg msg;
    struct wv_err err;
    long stream;

    lua_settop(L, 4);
    if (!lua_isnil(L, 4))
        fd = wv_ud_check(L, 4, &wv_fd_class);
    wv_fields_get(L, 3, def, &msg);
    if (push_over(L, peer))
        return 2;
    if (fd != NULL && fd->fd < 0)
        return wv_push_fail(L, WV_ECLOSED, "channel", "the descriptor is closed");
    stream =
        wv_chan_open(peer->chan, def->type, &msg, fd != NULL ? fd->fd : -1, NULL, &err);
    if (stream < 0)
        return wv_push_err(L, &err);
    if (fd != NULL)
        fd->fd = -1; /* the chan's now */
    wv_peer_flush(peer);
    lua_pushinteger(L, stream);
    return 1;
}

/* link:send(stream, name, fields) -> true */
static int link_send(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    uint32_t stream = check_stream(L, 2);
    const struct wv_msg_def *def = check_message(L, 3);
    union wv_msg msg;
    struct wv_err err;

    lua_settop(L, 4);
    wv_fields_get(L, 4, def, &msg);
    if (push_over(L, peer))
        return 2;
    if (wv_chan_send(peer->chan, stream, def->type, &msg, -1, &err) < 0)
        return wv_push_err(L, &err);
    wv_peer_flush(peer);
    lua_pushboolean(L, 1);
    return 1;
}

/* link:may_send(stream) -> bytes */
static int link_may_send(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    uint32_t stream = check_stream(L, 2);

    if (push_over(L, peer))
        return 2;
    wv_push_u64(L, wv_chan_may_send(peer->chan, stream));
    return 1;
}

/* link:consumed(stream, n) */
static int link_consumed(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    uint32_t stream = check_stream(L, 2);
    uint32_t n = (uint32_t)wv_check_u64(L, 3, UINT32_MAX);

    if (!wv_peer_ours(peer))
        return push_closed(L);
    wv_chan_consumed(peer->chan, stream, n);
    wv_peer_flush(peer);
    lua_pushboolean(L, 1);
    return 1;
}

/* link:next() -> stream, name, fields, file | nil | nil, err */
static int link_next(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    struct wv_event *event = &peer->event;
    const struct wv_msg_def *def;
    int rc, n = 3;

    lua_settop(L, 1);
    if (!wv_peer_ours(peer))
        return push_closed(L);
    rc = wv_peer_peek(peer);
    if (rc < 0)
        return wv_push_err(L, &peer->why);
    if (rc == 0) {
        lua_pushnil(L);
        return 1;
    }
    def = wv_msg_def(event->type);
    lua_pushinteger(L, event->stream);
    lua_pushstring(L, def->name);
    wv_fields_push(L, def, &event->msg);
    if (event->closed && event->user != NULL) {
        wv_gethold(L, 1);
        lua_pushnil(L);
        lua_rawseti(L, -2, (int)event->stream);
        lua_pop(L, 1);
    }
    if (event->type == WV_MSG_FILE)
        n += wv_file_push(L, 1, &event->fd);
    wv_peer_took(peer);
    return n;
}

/* link:collect(stream, cap) -> Collector */
static int link_collect(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    uint32_t stream = check_stream(L, 2);
    size_t cap = (size_t)wv_check_u64(L, 3, SIZE_MAX / 4);
    struct wv_collector *collector;

    if (!wv_peer_ours(peer))
        return push_closed(L);
    if (wv_chan_stream(peer->chan, stream) == NULL)
        return wv_push_fail(L, WV_ECLOSED, "collect", "the stream is not open");
    wv_gethold(L, 1);
    collector = wv_collector_push(L, cap);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, (int)stream);
    wv_peer_collect(peer, stream, &collector->keep);
    return 1;
}

/* link:guard(stream) -> Guard */
static int link_guard(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    uint32_t stream = check_stream(L, 2);

    if (!wv_peer_ours(peer))
        return push_closed(L);
    if (wv_chan_stream(peer->chan, stream) == NULL)
        return wv_push_fail(L, WV_ECLOSED, "guard", "the stream is not open");
    wv_guard_push(L, 1, stream);
    return 1;
}

/* link:step() -> true when there is something to take */
static int link_step(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);

    if (!wv_peer_ours(peer))
        return push_closed(L);
    wv_peer_pump(peer);
    lua_pushboolean(L, wv_peer_busy(peer));
    return 1;
}

static int link_close(lua_State *L)
{
    struct wv_link *link = wv_ud_check(L, 1, &wv_link_class);

    wv_peer_close(&link->peer);
    return 0;
}

/* link:closed() -> false | true, code */
static int link_closed(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);
    int ours = wv_peer_ours(peer);

    lua_pushboolean(L, !ours || peer->why.code != 0);
    if (ours && peer->why.code == 0)
        return 1;
    lua_pushstring(L, ours ? wv_code_name(peer->why.code) : "closed");
    return 2;
}

static int link_pollfd(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);

    if (!wv_peer_ours(peer))
        return push_closed(L);
    lua_pushinteger(L, peer->fd);
    return 1;
}

static int link_events(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);

    if (!wv_peer_ours(peer))
        return push_closed(L);
    lua_pushstring(L, (wv_peer_wants(peer) & EPOLLOUT) != 0 ? "rw" : "r");
    return 1;
}

/* 0: something waits in memory that the descriptor does not show. */
static int link_timeout(lua_State *L)
{
    struct wv_peer *peer = check_peer(L);

    if (!wv_peer_ours(peer))
        return push_closed(L);
    if (!wv_peer_busy(peer))
        return 0;
    lua_pushinteger(L, 0);
    return 1;
}

static const luaL_Reg link_methods[] = {
    {"open",     link_open    },
    {"send",     link_send    },
    {"may_send", link_may_send},
    {"consumed", link_consumed},
    {"next",     link_next    },
    {"collect",  link_collect },
    {"guard",    link_guard   },
    {"step",     link_step    },
    {"closed",   link_closed  },
    {"pollfd",   link_pollfd  },
    {"events",   link_events  },
    {"timeout",  link_timeout },
    {NULL,       NULL         },
};

const struct wv_class wv_link_class = {"wovyr.Link", link_close, link_methods};
