/* frame.h - the eight bytes before every message: length, type, stream
 *
 *     0        3    4         8
 *     | length |type| stream  | payload ...        little-endian, length <= 64 KiB
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_WIRE_FRAME_H
#define WV_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define WV_FRAME_HEAD 8u
#define WV_FRAME_MAX 65536u     /* payload of one frame */
#define WV_MESSAGE_MAX 262144u  /* a message may span frames up to this (argv, env) */
#define WV_FRAME_MORE 0x80u     /* bit of type: the message goes on in the next frame */

struct wv_frame {
    uint32_t len;    /* payload bytes */
    uint8_t type;    /* without WV_FRAME_MORE */
    uint8_t more;    /* 1: the next frame of this stream goes on with this message */
    uint32_t stream; /* 0: the connection itself */
};

void wv_frame_put(uint8_t head[WV_FRAME_HEAD], const struct wv_frame *frame);

/* >0: header bytes consumed; 0: need more; <0: WV_EPROTOCOL (too long). */
int wv_frame_get(const uint8_t *data, size_t len, struct wv_frame *frame);

static inline void wv_put32(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
    at[2] = (uint8_t)(v >> 16);
    at[3] = (uint8_t)(v >> 24);
}

static inline uint32_t wv_get32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static inline void wv_put64(uint8_t *at, uint64_t v)
{
    wv_put32(at, (uint32_t)v);
    wv_put32(at + 4, (uint32_t)(v >> 32));
}

static inline uint64_t wv_get64(const uint8_t *at)
{
    return (uint64_t)wv_get32(at) | (uint64_t)wv_get32(at + 4) << 32;
}

#endif
