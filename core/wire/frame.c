/* frame.c - the eight bytes before every message
 *
 * SPDX-License-Identifier: MIT */
#include "wire/frame.h"

#include "base/err.h"

void wv_frame_put(uint8_t head[WV_FRAME_HEAD], const struct wv_frame *frame)
{
    uint8_t type = (uint8_t)(frame->type | (frame->more ? WV_FRAME_MORE : 0u));

    wv_put32(head, (frame->len & 0xffffffu) | (uint32_t)type << 24);
    wv_put32(head + 4, frame->stream);
}

int wv_frame_get(const uint8_t *data, size_t len, struct wv_frame *frame)
{
    uint32_t word;

    if (len < WV_FRAME_HEAD)
        return 0;
    word = wv_get32(data);
    frame->len = word & 0xffffffu;
    frame->type = (uint8_t)((word >> 24) & ~WV_FRAME_MORE);
    frame->more = (word >> 24 & WV_FRAME_MORE) != 0;
    frame->stream = wv_get32(data + 4);
    return frame->len > WV_FRAME_MAX ? WV_EPROTOCOL : (int)WV_FRAME_HEAD;
}
