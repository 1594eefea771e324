/* bind.h - what the userdata of wovyr.core share: classes, errors, fields
 *
 * The rule of this directory: a Lua error jumps over C's cleanups, so resources are
 * owned by userdata only. A userdata is born closed, gets its metatable, and only then
 * acquires; everything that may raise happens before. `close`, `__gc` and `__close` are
 * one function, which never raises and may be called twice. C never calls a Lua
 * function.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_LUA_BIND_H
#define WV_LUA_BIND_H

#include "base/err.h"
#include "client/peer.h"
#include "lua/compat.h"

/* --- classes (class.c) ------------------------------------------------------------ */

/* Its address is the registry key of the metatable: no name that somebody else could
 * take, and another build of this module in the same state has classes of its own. */
struct wv_class {
    const char *name;
    lua_CFunction close;
    const luaL_Reg *methods;
};

extern const struct wv_class wv_link_class, wv_hub_class, wv_collector_class,
    wv_file_class, wv_guard_class, wv_fd_class;

/* Make the metatable. */
void wv_class_make(lua_State *L, const struct wv_class *class);

/* Push a new userdata, a copy of closed. */
void *wv_ud_new(lua_State *L, const struct wv_class *class, size_t size,
                const void *closed);

/* The userdata at arg, or NULL; check raises instead. */
void *wv_ud_test(lua_State *L, int arg, const struct wv_class *class);
void *wv_ud_check(lua_State *L, int arg, const struct wv_class *class);

/* Let the userdata at index hold the value on top (popped): a child keeps its parent.
 */
void wv_ud_hold(lua_State *L, int index);

/* --- errors (error.c) --------------------------------------------------------------
 */

/* Push nil and the error's table; returns 2. */
int wv_push_err(lua_State *L, const struct wv_err *err);
int wv_push_fail(lua_State *L, int code, const char *op, const char *message);

/* core.error_metatable(mt) */
int wv_error_metatable(lua_State *L);

/* --- fields (fields.c) -------------------------------------------------------------
 */

/* Fill msg from the table at arg (nil: no fields). Raises for misuse. Leaves values on
 * the stack that msg points into: msg is good until the C function returns. */
void wv_fields_get(lua_State *L, int arg, const struct wv_msg_def *def,
                   union wv_msg *msg);

/* Push a table with all fields of msg. */
void wv_fields_push(lua_State *L, const struct wv_msg_def *def,
                    const union wv_msg *msg);

/* Push an unsigned number as what this VM holds best. */
void wv_push_u64(lua_State *L, uint64_t value);

/* A whole number from 0 to max, or raise. */
uint64_t wv_check_u64(lua_State *L, int arg, uint64_t max);

/* --- userdata that others hold ------------------------------------------------------
 */

struct wv_link {
    struct wv_peer peer;
    unsigned files; /* live File objects of this link */
};

/* A bare descriptor, on its way into a message. */
struct wv_fd {
    int fd;
};

struct wv_collector {
    struct wv_keep keep;
};

/* Push a new, empty Collector. */
struct wv_collector *wv_collector_push(lua_State *L, size_t cap);

/* Push a Guard of a stream of the link at index. */
void wv_guard_push(lua_State *L, int link, uint32_t stream);

/* Push the File that came with the event of the link at index, whose descriptor it
 * takes; or nil and an error. Returns how many were pushed. */
int wv_file_push(lua_State *L, int link, int *fd);

/* Prepare the count of File objects of this Lua state. */
void wv_file_prepare(lua_State *L);

/* core.start, core.channel, core.hub, core.collector */
int wv_core_start(lua_State *L);
int wv_core_channel(lua_State *L);
int wv_core_hub(lua_State *L);
int wv_core_collector(lua_State *L);

#endif
