/* error.c - errors as Lua tables
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "lua/bind.h"

/* Its address is the registry key of the metatable that errors get. */
static const char metatable_key;

int wv_push_err(lua_State *L, const struct wv_err *err)
{
    lua_pushnil(L);
    lua_createtable(L, 0, 6);
    lua_pushstring(L, wv_code_name(err->code));
    lua_setfield(L, -2, "code");
    lua_pushstring(L, err->op);
    lua_setfield(L, -2, "op");
    if (err->sys != 0) {
        lua_pushfstring(L, "%s: %s", err->msg, strerror(err->sys));
        lua_pushinteger(L, err->sys);
        lua_setfield(L, -3, "errno");
    } else {
        lua_pushstring(L, err->msg);
    }
    lua_setfield(L, -2, "message");
    if (err->field[0] != '\0') {
        lua_pushstring(L, err->field);
        lua_setfield(L, -2, "field");
    }
    wv_reg_get(L, &metatable_key);
    if (lua_istable(L, -1))
        lua_setmetatable(L, -2);
    else
        lua_pop(L, 1);
    return 2;
}

int wv_push_fail(lua_State *L, int code, const char *op, const char *message)
{
    struct wv_err err;

    wv_fail(&err, code, op, "%s", message);
    return wv_push_err(L, &err);
}

int wv_error_metatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    wv_reg_set(L, &metatable_key);
    return 0;
}
