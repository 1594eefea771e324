/* buf.h - a growing byte queue with a bound: append at the end, consume at the front
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_BASE_BUF_H
#define WV_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct wv_buf {
    uint8_t *data;
    size_t head, tail; /* bytes in use: data[head .. tail) */
    size_t cap, max;   /* allocated, and the most it may hold */
};

void wv_buf_init(struct wv_buf *buf, size_t max);
void wv_buf_fini(struct wv_buf *buf);

/* Room for n more bytes at the end, or NULL when that would pass max or memory is out. */
uint8_t *wv_buf_room(struct wv_buf *buf, size_t n);
void wv_buf_added(struct wv_buf *buf, size_t n);
int wv_buf_add(struct wv_buf *buf, const void *data, size_t n); /* 0, or WV_ELIMIT */

static inline size_t wv_buf_len(const struct wv_buf *buf)
{
    return buf->tail - buf->head;
}

static inline uint8_t *wv_buf_ptr(const struct wv_buf *buf)
{
    return buf->data == NULL ? NULL : buf->data + buf->head;
}

/* Drop n bytes from the front. */
void wv_buf_eat(struct wv_buf *buf, size_t n);

/* Give the memory of an empty buffer back, unless it is small. */
void wv_buf_trim(struct wv_buf *buf);

#endif
