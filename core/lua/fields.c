/* fields.c - a message's struct from a Lua table, and back, by the tables of msg.def
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "lua/bind.h"

static void bad_field(lua_State *L, int arg, const struct wv_msg_def *def,
                      const char *name, const char *want) __attribute__((noreturn));

static void bad_field(lua_State *L, int arg, const struct wv_msg_def *def,
                      const char *name, const char *want)
{
    lua_pushfstring(L, "field '%s' of %s: %s expected", name, def->name, want);
    luaL_argerror(L, arg, lua_tostring(L, -1));
    __builtin_unreachable(); /* luaL_argerror does not return, but does not say so */
}

/* The number at index as a whole one of 0..max: 1, or 0. */
static int to_u64(lua_State *L, int index, uint64_t max, uint64_t *value)
{
    lua_Number number;

    if (lua_type(L, index) != LUA_TNUMBER)
        return 0;
    if (wv_isinteger(L, index)) {
        lua_Integer integer = lua_tointeger(L, index);

        *value = (uint64_t)integer;
        return integer >= 0 && *value <= max;
    }
    number = lua_tonumber(L, index);
    if (!(number >= 0 && number < 18446744073709551616.0)) /* NaN fails too */
        return 0;
    *value = (uint64_t)number;
    return (lua_Number)*value >= number && *value <= max;
}

uint64_t wv_check_u64(lua_State *L, int arg, uint64_t max)
{
    uint64_t value = 0;

    luaL_checktype(L, arg, LUA_TNUMBER);
    if (!to_u64(L, arg, max, &value))
        luaL_argerror(L, arg, "not a whole number in range");
    return value;
}

void wv_push_u64(lua_State *L, uint64_t value)
{
#if LUA_VERSION_NUM >= 503
    if (value <= INT64_MAX)
        lua_pushinteger(L, (lua_Integer)value);
    else
#endif
        lua_pushnumber(L, (lua_Number)value);
}

/* Pack the list on top of the stack; what it is packed into takes its place. */
static void get_strv(lua_State *L, int arg, const struct wv_msg_def *def,
                     const struct wv_field *field, struct wv_strv *out)
{
    int list = lua_gettop(L);
    size_t count, total = 0, used = 0, len;
    uint8_t *packed;

    if (!lua_istable(L, list))
        bad_field(L, arg, def, field->name, "a list of strings");
    count = wv_rawlen(L, list);
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(L, list, (int)i);
        if (lua_type(L, -1) != LUA_TSTRING)
            bad_field(L, arg, def, field->name, "a list of strings");
        total += 4 + wv_rawlen(L, -1);
        lua_pop(L, 1);
        if (total > INT32_MAX)
            bad_field(L, arg, def, field->name, "a shorter list");
    }
    packed = wv_newuserdata(L, total > 0 ? total : 1);
    /* Finalizers may have run just now, and they may know the table: trust it no
     * further than the room that was counted. */
    for (size_t i = 1; i <= count; i++) {
        const char *text;

        lua_rawgeti(L, list, (int)i);
        text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
        if (text == NULL || total - used < 4 || len > total - used - 4)
            bad_field(L, arg, def, field->name, "an unchanging list");
        wv_put32(packed + used, (uint32_t)len);
        memcpy(packed + used + 4, text, len);
        used += 4 + len;
        lua_pop(L, 1);
    }
    *out = (struct wv_strv){(char *)packed, (uint32_t)used, (uint32_t)count};
    lua_replace(L, list);
}

/* The value on top of the stack into its place in msg. */
static void get_field(lua_State *L, int arg, const struct wv_msg_def *def,
                      const struct wv_field *field, void *to)
{
    uint64_t value = 0;
    size_t len;
    const char *text;

    switch ((enum wv_kind)field->kind) {
    case WV_U8:
        if (lua_isboolean(L, -1))
            value = (uint64_t)lua_toboolean(L, -1);
        else if (!to_u64(L, -1, UINT8_MAX, &value))
            bad_field(L, arg, def, field->name, "a number up to 255");
        *(uint8_t *)to = (uint8_t)value;
        break;
    case WV_U32:
        if (!to_u64(L, -1, UINT32_MAX, &value))
            bad_field(L, arg, def, field->name, "a whole number of 32 bits");
        memcpy(to, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
        break;
    case WV_U64:
        if (!to_u64(L, -1, UINT64_MAX, &value))
            bad_field(L, arg, def, field->name, "a whole number of 64 bits");
        memcpy(to, &value, sizeof value);
        break;
    case WV_STR:
    case WV_TAIL:
        if (lua_type(L, -1) != LUA_TSTRING)
            bad_field(L, arg, def, field->name, "a string");
        text = lua_tolstring(L, -1, &len);
        if (len > UINT32_MAX)
            bad_field(L, arg, def, field->name, "a shorter string");
        memcpy(to, &(struct wv_str){text, (uint32_t)len}, sizeof(struct wv_str));
        break;
    case WV_STRV: {
        struct wv_strv list;

        get_strv(L, arg, def, field, &list);
        memcpy(to, &list, sizeof list);
        break;
    }
    }
}

/* Raise for the key that is no field of def. */
static void find_unknown(lua_State *L, int arg, const struct wv_msg_def *def)
{
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        size_t i = 0;

        while (key != NULL && i < def->nfields && strcmp(def->fields[i].name, key) != 0)
            i++;
        if (key == NULL || i == def->nfields)
            luaL_argerror(L, arg,
                          lua_pushfstring(L, "%s has no field '%s'", def->name,
                                          key != NULL ? key : luaL_typename(L, -2)));
    }
}

void wv_fields_get(lua_State *L, int arg, const struct wv_msg_def *def,
                   union wv_msg *msg)
{
    size_t known = 0, given = 0;

    memset(msg, 0, sizeof *msg);
    if (lua_isnoneornil(L, arg))
        return;
    luaL_checktype(L, arg, LUA_TTABLE);
    luaL_checkstack(L, def->nfields + 8, "too many fields");
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1))
        given++;
    for (size_t i = 0; i < def->nfields; i++) {
        const struct wv_field *field = &def->fields[i];

        lua_pushstring(L, field->name);
        lua_rawget(L, arg);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        known++;
        get_field(L, arg, def, field, (char *)msg + field->offset);
    }
    if (known != given)
        find_unknown(L, arg, def);
}

static void push_strv(lua_State *L, struct wv_strv list)
{
    struct wv_str item;
    int n = 0;

    lua_createtable(L, list.count < 64 ? (int)list.count : 64, 0);
    while (wv_strv_next(&list, &item)) {
        lua_pushlstring(L, item.ptr, item.len);
        lua_rawseti(L, -2, ++n);
    }
}

void wv_fields_push(lua_State *L, const struct wv_msg_def *def, const union wv_msg *msg)
{
    lua_createtable(L, 0, def->nfields);
    for (size_t i = 0; i < def->nfields; i++) {
        const struct wv_field *field = &def->fields[i];
        const char *from = (const char *)msg + field->offset;
        struct wv_str str;
        struct wv_strv list;
        uint64_t wide;
        uint32_t word;

        switch ((enum wv_kind)field->kind) {
        case WV_U8:
            wv_push_u64(L, *(const uint8_t *)from);
            break;
        case WV_U32:
            memcpy(&word, from, sizeof word);
            wv_push_u64(L, word);
            break;
        case WV_U64:
            memcpy(&wide, from, sizeof wide);
            wv_push_u64(L, wide);
            break;
        case WV_STR:
        case WV_TAIL:
            memcpy(&str, from, sizeof str);
            lua_pushlstring(L, str.len > 0 ? str.ptr : "", str.len);
            break;
        case WV_STRV:
            memcpy(&list, from, sizeof list);
            push_strv(L, list);
            break;
        }
        lua_setfield(L, -2, field->name);
    }
}
