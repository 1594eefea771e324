/* msg.c - encode and decode by the tables of msg.def
 *
 * SPDX-License-Identifier: MIT */
#include "wire/msg.h"

#include <string.h>

/* Fields: one array per message, ended by a nameless one so that none is empty. */
#define FIELD(S, kind_, field_, max_)                                                  \
    {#field_, WV_##kind_, (uint16_t)offsetof(struct wv_msg_##S, field_), max_},
#define M(NAME, number, from, on, phase, next, flags)                                  \
    static const struct wv_field fields_##NAME[] = {                                   \
        WV_FIELDS_##NAME(FIELD, NAME){NULL, 0, 0, 0},                                  \
    };
WV_MESSAGES(M)
#undef M

/* The words of the state columns. */
#define H WV_FROM_H
#define G WV_FROM_G
#define C WV_FROM_C
#define S WV_FROM_S
#define EITHER (H | G | C | S)
#define OPENER (H | C)
#define SERVER (G | S)
#define CONN WV_ON_CONN
#define SELF WV_ON_SELF
#define ANY WV_ON_ANY
#define ON(NAME) WV_ON_OPENER(WV_MSG_##NAME)
#define WAIT WV_WAIT
#define LIVE WV_LIVE
#define BOTH WV_BOTH
#define SAME WV_SAME
#define GONE WV_GONE
#define DATA WV_DATA
#define FD WV_FD
#define LATE WV_LATE


static const struct wv_msg_def defs[128] = {
#define M(NAME, number, from_, on_, phase_, next_, flags_)                             \
    [number] = {#NAME,                                                                 \
                fields_##NAME,                                                         \
                on_,                                                                   \
                sizeof(struct wv_msg_##NAME),                                          \
                sizeof fields_##NAME / sizeof fields_##NAME[0] - 1,                    \
                number,                                                                \
                from_,                                                                 \
                phase_,                                                                \
                next_,                                                                 \
                flags_},
    WV_MESSAGES(M)
#undef M
};

const struct wv_msg_def *wv_msg_def(uint8_t type)
{
    return type < 128 && defs[type].name != NULL ? &defs[type] : NULL;
}

const struct wv_msg_def *wv_msg_named(const char *name)
{
    for (size_t i = 0; i < 128; i++)
        if (defs[i].name != NULL && strcmp(defs[i].name, name) == 0)
            return &defs[i];
    return NULL;
}

static const void *at(const void *msg, const struct wv_field *field)
{
    return (const char *)msg + field->offset;
}

static int too_long(const struct wv_msg_def *def, const struct wv_field *field,
                    uint32_t len, struct wv_err *err)
{
    int code = wv_fail(err, WV_EINVALID, def->name, "%s is %u bytes, at most %u",
                       field->name, len, field->max);

    if (err != NULL)
        strncpy(err->field, field->name, sizeof err->field - 1);
    return code;
}

long wv_msg_size(uint8_t type, const void *msg, struct wv_err *err)
{
    const struct wv_msg_def *def = wv_msg_def(type);
    long size = 0;

    if (def == NULL)
        return wv_fail(err, WV_EINVALID, "message", "no message has type %u", type);
    for (const struct wv_field *f = def->fields; f->name != NULL; f++) {
        uint32_t len = 0;

        switch ((enum wv_kind)f->kind) {
        case WV_U8:
            size += 1;
            break;
        case WV_U32:
            size += 4;
            break;
        case WV_U64:
            size += 8;
            break;
        case WV_STR:
            len = ((const struct wv_str *)at(msg, f))->len;
            size += 4;
            break;
        case WV_STRV:
            len = ((const struct wv_strv *)at(msg, f))->len;
            size += 8;
            break;
        case WV_TAIL:
            len = ((const struct wv_str *)at(msg, f))->len;
            break;
        }
        if (len > f->max)
            return too_long(def, f, len, err);
        size += (long)len;
    }
    if (size > (long)WV_MESSAGE_MAX)
        return wv_fail(err, WV_EINVALID, def->name, "%ld bytes in a message, at most %u",
                       size, WV_MESSAGE_MAX);
    return size;
}

static uint8_t *put_bytes(uint8_t *out, const char *ptr, uint32_t len)
{
    if (len > 0)
        memcpy(out, ptr, len);
    return out + len;
}

void wv_msg_put(uint8_t type, const void *msg, uint8_t *out)
{
    const struct wv_msg_def *def = wv_msg_def(type);

    if (def == NULL)
        return;
    for (const struct wv_field *f = def->fields; f->name != NULL; f++) {
        const void *from = at(msg, f);
        const struct wv_str *str = from;
        const struct wv_strv *strv = from;

        switch ((enum wv_kind)f->kind) {
        case WV_U8:
            *out++ = *(const uint8_t *)from;
            break;
        case WV_U32:
            wv_put32(out, *(const uint32_t *)from);
            out += 4;
            break;
        case WV_U64:
            wv_put64(out, *(const uint64_t *)from);
            out += 8;
            break;
        case WV_STR:
            wv_put32(out, str->len);
            out = put_bytes(out + 4, str->ptr, str->len);
            break;
        case WV_STRV:
            wv_put32(out, strv->len);
            wv_put32(out + 4, strv->count);
            out = put_bytes(out + 8, strv->ptr, strv->len);
            break;
        case WV_TAIL:
            out = put_bytes(out, str->ptr, str->len);
            break;
        }
    }
}

/* A list is good when exactly count strings fill exactly its bytes. */
static int strv_good(const struct wv_strv *list)
{
    struct wv_strv rest = *list;

    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t len;

        if (rest.len < 4)
            return 0;
        len = wv_get32((const uint8_t *)rest.ptr);
        if (len > rest.len - 4)
            return 0;
        rest.ptr += 4 + len;
        rest.len -= 4 + len;
    }
    return rest.len == 0;
}

/* Read one field at data[0..left); returns the bytes it took, or -1. */
static long get_field(const struct wv_field *f, const uint8_t *data, size_t left, void *to)
{
    struct wv_str *str = to;
    struct wv_strv *strv = to;
    uint32_t len;

    switch ((enum wv_kind)f->kind) {
    case WV_U8:
        if (left < 1)
            return -1;
        *(uint8_t *)to = data[0];
        return 1;
    case WV_U32:
        if (left < 4)
            return -1;
        *(uint32_t *)to = wv_get32(data);
        return 4;
    case WV_U64:
        if (left < 8)
            return -1;
        *(uint64_t *)to = wv_get64(data);
        return 8;
    case WV_STR:
        if (left < 4 || (len = wv_get32(data)) > left - 4 || len > f->max)
            return -1;
        *str = (struct wv_str){(const char *)data + 4, len};
        return 4 + (long)len;
    case WV_STRV:
        if (left < 8 || (len = wv_get32(data)) > left - 8 || len > f->max)
            return -1;
        *strv = (struct wv_strv){(const char *)data + 8, len, wv_get32(data + 4)};
        return strv_good(strv) ? 8 + (long)len : -1;
    case WV_TAIL:
        if (left > f->max)
            return -1;
        *str = (struct wv_str){(const char *)data, (uint32_t)left};
        return (long)left;
    }
    return -1;
}

int wv_msg_get(uint8_t type, const uint8_t *data, size_t len, union wv_msg *msg,
               struct wv_err *err)
{
    const struct wv_msg_def *def = wv_msg_def(type);
    size_t used = 0;

    if (def == NULL)
        return wv_fail(err, WV_EPROTOCOL, "decode", "no message has number %u", type);
    for (const struct wv_field *f = def->fields; f->name != NULL; f++) {
        long n = get_field(f, data + used, len - used, (char *)msg + f->offset);

        if (n < 0)
            return wv_fail(err, WV_EPROTOCOL, "decode", "%s.%s does not fit", def->name,
                           f->name);
        used += (size_t)n;
    }
    if (used != len)
        return wv_fail(err, WV_EPROTOCOL, "decode", "%s has %zu bytes too many", def->name,
                       len - used);
    return 0;
}

int wv_strv_next(struct wv_strv *list, struct wv_str *item)
{
    uint32_t len;

    if (list->count == 0 || list->len < 4)
        return 0;
    len = wv_get32((const uint8_t *)list->ptr);
    if (len > list->len - 4)
        return 0;
    *item = (struct wv_str){list->ptr + 4, len};
    list->ptr += 4 + len;
    list->len -= 4 + len;
    list->count--;
    return 1;
}

long wv_strv_pack(uint8_t *out, size_t room, const struct wv_str *items, size_t n)
{
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        if (room - used < 4 || items[i].len > room - used - 4)
            return WV_ELIMIT;
        wv_put32(out + used, items[i].len);
        used = (size_t)(put_bytes(out + used + 4, items[i].ptr, items[i].len) - out);
    }
    return (long)used;
}

struct wv_str wv_str(const char *text)
{
    return (struct wv_str){text, (uint32_t)strlen(text)};
}

int wv_str_copy(struct wv_str s, char *out, size_t room)
{
    if (s.len >= room || (s.len > 0 && memchr(s.ptr, '\0', s.len) != NULL))
        return WV_EINVALID;
    if (s.len > 0)
        memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return 0;
}
