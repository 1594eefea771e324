/* collector.c - Collector: the output of a process, outside Lua until it is taken
 *
 * SPDX-License-Identifier: MIT */
#include "lua/bind.h"

struct wv_collector *wv_collector_push(lua_State *L, size_t cap)
{
    static const struct wv_collector closed;
    struct wv_collector *collector =
        wv_ud_new(L, &wv_collector_class, sizeof closed, &closed);

    wv_keep_init(&collector->keep, cap);
    return collector;
}

static struct wv_keep *check_keep(lua_State *L)
{
    struct wv_collector *collector = wv_ud_check(L, 1, &wv_collector_class);

    return &collector->keep;
}

/* core.collector(cap) */
int wv_core_collector(lua_State *L)
{
    wv_collector_push(L, (size_t)wv_check_u64(L, 1, SIZE_MAX / 4));
    return 1;
}

/* A closed one keeps nothing and only counts; a stream may still feed it. */
static int collector_close(lua_State *L)
{
    struct wv_keep *keep = check_keep(L);

    wv_keep_fini(keep);
    wv_keep_init(keep, 0);
    return 0;
}

/* c:add(source, data); source 1 stdout, 2 stderr, 3 pty */
static int collector_add(lua_State *L)
{
    struct wv_keep *keep = check_keep(L);
    int source = (int)wv_check_u64(L, 2, WV_SOURCE_PTY);
    size_t len;
    const char *data = luaL_checklstring(L, 3, &len);

    luaL_argcheck(L, source >= WV_SOURCE_STDOUT, 2, "no such source");
    wv_keep_add(keep, source, data, len);
    return 0;
}

/* Push a stream's bytes, then give its memory back: never two copies of both at once.
 */
static uint64_t take(lua_State *L, struct wv_keep *keep, struct wv_keep_stream *stream)
{
    uint64_t missing = stream->missing;

    wv_keep_join(keep, stream);
    lua_pushlstring(L, stream->len > 0 ? (const char *)stream->data : "", stream->len);
    wv_keep_forget(stream);
    return missing;
}

/* c:take() -> stdout, stderr, missing_out, missing_err, gap; it is empty then. gap:
 * bytes of the process that did not come here at all, of whichever stream. */
static int collector_take(lua_State *L)
{
    struct wv_keep *keep = check_keep(L);
    uint64_t offset = keep->offset, gap = keep->gap;
    uint64_t out, err;

    lua_settop(L, 1);
    out = take(L, keep, &keep->out);
    err = take(L, keep, &keep->err);
    wv_keep_init(keep, keep->cap);
    keep->offset = offset;
    wv_push_u64(L, out);
    wv_push_u64(L, err);
    wv_push_u64(L, gap);
    return 5;
}

/* c:bytes() -> all that came since the last take, kept or not */
static int collector_bytes(lua_State *L)
{
    wv_push_u64(L, check_keep(L)->total);
    return 1;
}

static const luaL_Reg collector_methods[] = {
    {"add",   collector_add  },
    {"take",  collector_take },
    {"bytes", collector_bytes},
    {NULL,    NULL           },
};

const struct wv_class wv_collector_class = {"wovyr.Collector", collector_close,
                                            collector_methods};
