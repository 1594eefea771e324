/* compat.h - the few things that Lua 5.4 and LuaJIT (5.1's API) name differently
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_LUA_COMPAT_H
#define WV_LUA_COMPAT_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#if LUA_VERSION_NUM >= 504

#define wv_rawlen lua_rawlen

static inline void *wv_newuserdata(lua_State *L, size_t size)
{
    return lua_newuserdatauv(L, size, 1);
}

/* Pop a table and make it what the userdata at index holds. */
static inline void wv_sethold(lua_State *L, int index)
{
    lua_setiuservalue(L, index, 1);
}

static inline void wv_gethold(lua_State *L, int index)
{
    lua_getiuservalue(L, index, 1);
}

static inline void wv_reg_get(lua_State *L, const void *key)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
}

static inline void wv_reg_set(lua_State *L, const void *key)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static inline int wv_isinteger(lua_State *L, int index)
{
    return lua_isinteger(L, index);
}

#else

#define wv_rawlen lua_objlen

static inline void *wv_newuserdata(lua_State *L, size_t size)
{
    return lua_newuserdata(L, size);
}

static inline void wv_sethold(lua_State *L, int index)
{
    lua_setfenv(L, index);
}

static inline void wv_gethold(lua_State *L, int index)
{
    lua_getfenv(L, index);
}

static inline void wv_reg_get(lua_State *L, const void *key)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

static inline void wv_reg_set(lua_State *L, const void *key)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)key);
    lua_insert(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

static inline int wv_isinteger(lua_State *L, int index)
{
    (void)L;
    (void)index;
    return 0;
}

#endif

#endif
