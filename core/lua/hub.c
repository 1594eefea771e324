/* hub.c - Hub: wait for many links at once
 *
 * A hub does not hold its links: a link that Lua forgets leaves it.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>

#include "lua/bind.h"

int wv_core_hub(lua_State *L)
{
    static const struct wv_hub closed = {.fd = -1};
    struct wv_hub *hub = wv_ud_new(L, &wv_hub_class, sizeof closed, &closed);
    struct wv_err err;

    return wv_hub_open(hub, &err) < 0 ? wv_push_err(L, &err) : 1;
}

static struct wv_hub *check_hub(lua_State *L)
{
    return wv_ud_check(L, 1, &wv_hub_class);
}

static int push_closed(lua_State *L)
{
    return wv_push_fail(L, WV_ECLOSED, "hub", "the hub is closed");
}

static int hub_close(lua_State *L)
{
    wv_hub_close(check_hub(L));
    return 0;
}

/* hub:add(link) -> true */
static int hub_add(lua_State *L)
{
    struct wv_hub *hub = check_hub(L);
    struct wv_link *link = wv_ud_check(L, 2, &wv_link_class);
    struct wv_err err;

    if (!wv_hub_ours(hub))
        return push_closed(L);
    if (!wv_peer_ours(&link->peer))
        return wv_push_fail(L, WV_ECLOSED, "hub", "the link is closed");
    if (wv_hub_add(hub, &link->peer, &err) < 0)
        return wv_push_err(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

/* hub:remove(link) -> true; also when it is not there */
static int hub_remove(lua_State *L)
{
    struct wv_hub *hub = check_hub(L);
    struct wv_link *link = wv_ud_check(L, 2, &wv_link_class);

    if (link->peer.hub == hub)
        wv_hub_remove(&link->peer);
    lua_pushboolean(L, 1);
    return 1;
}

static int move(lua_State *L, struct wv_hub *hub, int timeout_ms)
{
    struct wv_err err;
    int ready;

    if (!wv_hub_ours(hub))
        return push_closed(L);
    ready = wv_hub_wait(hub, timeout_ms, &err);
    if (ready < 0)
        return wv_push_err(L, &err);
    lua_pushinteger(L, ready);
    return 1;
}

/* hub:step() -> links with something to take */
static int hub_step(lua_State *L)
{
    return move(L, check_hub(L), 0);
}

/* hub:wait(seconds) -> links with something to take. Ends early when a signal came. */
static int hub_wait(lua_State *L)
{
    struct wv_hub *hub = check_hub(L);
    lua_Number ms = luaL_optnumber(L, 2, -1) * 1000;
    int timeout = -1;

    if (!lua_isnoneornil(L, 2)) {
        luaL_argcheck(L, ms >= 0, 2, "not a time");
        /* Rounded up: a wait that ends a little early would spin until its deadline. */
        timeout = ms >= INT_MAX ? INT_MAX : (int)ms;
        timeout += timeout < ms && timeout < INT_MAX;
    }
    return move(L, hub, timeout);
}

static int hub_pollfd(lua_State *L)
{
    struct wv_hub *hub = check_hub(L);

    if (!wv_hub_ours(hub))
        return push_closed(L);
    lua_pushinteger(L, hub->fd);
    return 1;
}

static int hub_events(lua_State *L)
{
    check_hub(L);
    lua_pushliteral(L, "r");
    return 1;
}

/* 0: some link has something that the descriptor does not show. */
static int hub_timeout(lua_State *L)
{
    if (check_hub(L)->ready == 0)
        return 0;
    lua_pushinteger(L, 0);
    return 1;
}

static const luaL_Reg hub_methods[] = {
    {"add",     hub_add    },
    {"remove",  hub_remove },
    {"step",    hub_step   },
    {"wait",    hub_wait   },
    {"pollfd",  hub_pollfd },
    {"events",  hub_events },
    {"timeout", hub_timeout},
    {NULL,      NULL       },
};

const struct wv_class wv_hub_class = {"wovyr.Hub", hub_close, hub_methods};
