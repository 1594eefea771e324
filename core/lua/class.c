/* class.c - classes of userdata
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "lua/bind.h"

/* tostring(): "wovyr.Link: 0x..." */
static int ud_tostring(lua_State *L)
{
    lua_pushfstring(L, "%s: %p", lua_tostring(L, lua_upvalueindex(1)),
                    lua_topointer(L, 1));
    return 1;
}

void wv_class_make(lua_State *L, const struct wv_class *class)
{
    wv_reg_get(L, class);
    if (lua_istable(L, -1)) { /* required again: what exists stays valid */
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 1);
    lua_createtable(L, 0, 8);
    lua_newtable(L);
    luaL_setfuncs(L, class->methods, 0);
    lua_pushcfunction(L, class->close);
    lua_setfield(L, -2, "close");
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, class->close);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, class->close);
    lua_setfield(L, -2, "__close");
    lua_pushstring(L, class->name);
    lua_pushcclosure(L, ud_tostring, 1);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, class->name);
    lua_setfield(L, -2, "__name");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    wv_reg_set(L, class);
}

void *wv_ud_new(lua_State *L, const struct wv_class *class, size_t size,
                const void *closed)
{
    void *ud = wv_newuserdata(L, size);

    memcpy(ud, closed, size);
    wv_reg_get(L, class);
    lua_setmetatable(L, -2);
    return ud;
}

void *wv_ud_test(lua_State *L, int arg, const struct wv_class *class)
{
    int same;

    if (lua_type(L, arg) != LUA_TUSERDATA || !lua_getmetatable(L, arg))
        return NULL;
    wv_reg_get(L, class);
    same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same ? lua_touserdata(L, arg) : NULL;
}

void *wv_ud_check(lua_State *L, int arg, const struct wv_class *class)
{
    void *ud = wv_ud_test(L, arg, class);

    if (ud == NULL)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "%s expected, got %s", class->name,
                                      luaL_typename(L, arg)));
    return ud;
}

void wv_ud_hold(lua_State *L, int index)
{
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    wv_sethold(L, index);
}
