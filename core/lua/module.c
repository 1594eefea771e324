/* module.c - wovyr.core: what C gives to lua/wovyr
 *
 * SPDX-License-Identifier: MIT */
#include "build_id.h"
#include "base/clock.h"
#include "lua/bind.h"

#define WV_EXPORT __attribute__((visibility("default")))
#define WV_VERSION "0.1.0"

WV_EXPORT int luaopen_wovyr_core(lua_State *L);

/* core.now() -> seconds that only go forward */
static int core_now(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)wv_now_us() / 1e6);
    return 1;
}

/* core.codes: number to name and name to number */
static void push_codes(lua_State *L)
{
    lua_newtable(L);
#define WV_CODE(symbol, number, name)                                                  \
    lua_pushliteral(L, name);                                                          \
    lua_rawseti(L, -2, number);                                                        \
    lua_pushinteger(L, number);                                                        \
    lua_setfield(L, -2, name);
#include "base/codes.def"
#undef WV_CODE
}

static const luaL_Reg functions[] = {
    {"start",           wv_core_start     },
    {"channel",         wv_core_channel   },
    {"hub",             wv_core_hub       },
    {"collector",       wv_core_collector },
    {"error_metatable", wv_error_metatable},
    {"now",             core_now          },
    {NULL,              NULL              },
};

int luaopen_wovyr_core(lua_State *L)
{
    static const struct wv_class *const classes[] = {
        &wv_link_class, &wv_hub_class,   &wv_collector_class,
        &wv_file_class, &wv_guard_class, &wv_fd_class,
    };

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        wv_class_make(L, classes[i]);
    wv_file_prepare(L);
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    lua_pushliteral(L, WV_BUILD);
    lua_setfield(L, -2, "BUILD");
    lua_pushliteral(L, WV_VERSION);
    lua_setfield(L, -2, "VERSION");
    push_codes(L);
    lua_setfield(L, -2, "codes");
    return 1;
}
