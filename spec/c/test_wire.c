/* test_wire.c - frames and messages: round trips, and every truncation against a guard page
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "wire/msg.h"

/* len bytes that end exactly where an unmapped page begins. */
static uint8_t *guarded(const uint8_t *data, size_t len)
{
    size_t page = 4096, size = (len + 2 * page - 1) / page * page;
    uint8_t *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);
    uint8_t *at = base + size - page - len;

    mprotect(base + size - page, page, PROT_NONE);
    memcpy(at, data, len);
    return at;
}

static void fill(const struct wv_msg_def *def, void *msg, uint8_t *list, long list_len)
{
    memset(msg, 0, sizeof(union wv_msg));
    for (const struct wv_field *f = def->fields; f->name != NULL; f++) {
        char *to = (char *)msg + f->offset;

        switch ((enum wv_kind)f->kind) {
        case WV_U8:
            *(uint8_t *)to = 0xa5;
            break;
        case WV_U32:
            *(uint32_t *)to = 0xdeadbeef;
            break;
        case WV_U64:
            *(uint64_t *)to = 0x0123456789abcdefull;
            break;
        case WV_STR:
        case WV_TAIL:
            *(struct wv_str *)to = wv_str("text");
            break;
        case WV_STRV:
            *(struct wv_strv *)to = (struct wv_strv){(char *)list, (uint32_t)list_len, 2};
            break;
        }
    }
}

static int round_trip(const struct wv_msg_def *def)
{
    union wv_msg in, out;
    struct wv_str items[2] = {{"a\0b", 3}, {"", 0}};
    uint8_t list[64], wire[1024], again[1024];
    long list_len = wv_strv_pack(list, sizeof list, items, 2);
    long size;
    int good = 1;

    fill(def, &in, list, list_len);
    size = wv_msg_size(def->type, &in, NULL);
    wv_msg_put(def->type, &in, wire);
    good &= wv_msg_get(def->type, wire, (size_t)size, &out, NULL) == 0;
    wv_msg_put(def->type, &out, again);
    good &= memcmp(wire, again, (size_t)size) == 0;
    for (long n = 0; n < size; n++) {
        uint8_t *edge = guarded(wire, (size_t)n);
        int rc = wv_msg_get(def->type, edge, (size_t)n, &out, NULL);
        const struct wv_field *last = &def->fields[def->nfields - 1];

        /* Only a message that ends in a TAIL may be shorter than it was. */
        good &= rc == WV_EPROTOCOL || last->kind == WV_TAIL;
    }
    good &= wv_msg_get(def->type, again, (size_t)size + 1, &out, NULL) == WV_EPROTOCOL ||
            (def->nfields > 0 && def->fields[def->nfields - 1].kind == WV_TAIL);
    return good;
}

int main(void)
{
    struct wv_frame frame = {.len = 65536, .type = 0x12, .more = 1, .stream = 0x7fffffff};
    struct wv_frame back;
    struct wv_err err;
    uint8_t head[WV_FRAME_HEAD], list[16] = {1, 0, 0, 0, 'x'};
    union wv_msg msg;

    wv_frame_put(head, &frame);
    CHECK(wv_frame_get(head, 7, &back) == 0, "seven bytes are not a header");
    CHECK(wv_frame_get(head, 8, &back) == 8 && back.len == 65536 && back.type == 0x12 &&
              back.more == 1 && back.stream == 0x7fffffff,
          "a header round-trips");
    head[0] = 1;
    CHECK(wv_frame_get(head, 8, &back) == WV_EPROTOCOL, "65537 bytes are too many");

    for (unsigned type = 0; type < 128; type++) {
        const struct wv_msg_def *def = wv_msg_def((uint8_t)type);

        if (def != NULL)
            CHECK(round_trip(def), def->name);
    }
    CHECK(wv_msg_get(0x7f, head, 0, &msg, &err) == WV_EPROTOCOL, "an unknown number");

    memset(&msg, 0, sizeof msg);
    msg.START.tag = (struct wv_str){"", 129};
    CHECK(wv_msg_size(WV_MSG_START, &msg, &err) == WV_EINVALID &&
              strcmp(err.field, "tag") == 0,
          "a field that is too long is named");
    msg.START.tag.len = 0;
    msg.START.argv = (struct wv_strv){(char *)list, 5, 2};
    {
        uint8_t wire[512];
        long size = wv_msg_size(WV_MSG_START, &msg, &err);

        wv_msg_put(WV_MSG_START, &msg, wire);
        CHECK(wv_msg_get(WV_MSG_START, wire, (size_t)size, &msg, &err) == WV_EPROTOCOL,
              "a list that says more than it holds");
    }
    TEST_END();
}
