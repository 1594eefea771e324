/* buf.c - a growing byte queue with a bound
 *
 * SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define KEEP 16384 /* what trim leaves alone */

void wv_buf_init(struct wv_buf *buf, size_t max)
{
    *buf = (struct wv_buf){.max = max};
}

void wv_buf_fini(struct wv_buf *buf)
{
    free(buf->data);
    *buf = (struct wv_buf){.max = buf->max};
}

uint8_t *wv_buf_room(struct wv_buf *buf, size_t n)
{
    size_t len = wv_buf_len(buf);

    if (n > buf->max - len)
        return NULL;
    if (buf->cap - buf->tail >= n && buf->data != NULL)
        return buf->data + buf->tail;
    if (buf->head > 0) {
        memmove(buf->data, buf->data + buf->head, len);
        buf->head = 0;
        buf->tail = len;
    }
    if (buf->cap < len + n || buf->data == NULL) {
        size_t cap = buf->cap > 0 ? buf->cap : 1024;
        uint8_t *grown;

        while (cap < len + n)
            cap *= 2;
        if (cap > buf->max)
            cap = buf->max;
        grown = realloc(buf->data, cap);
        if (grown == NULL)
            return NULL;
        buf->data = grown;
        buf->cap = cap;
    }
    return buf->data + buf->tail;
}

void wv_buf_added(struct wv_buf *buf, size_t n)
{
    buf->tail += n;
}

int wv_buf_add(struct wv_buf *buf, const void *data, size_t n)
{
    uint8_t *room = wv_buf_room(buf, n);

    if (room == NULL)
        return WV_ELIMIT;
    memcpy(room, data, n);
    wv_buf_added(buf, n);
    return 0;
}

void wv_buf_eat(struct wv_buf *buf, size_t n)
{
    buf->head += n;
    if (buf->head == buf->tail)
        buf->head = buf->tail = 0;
}

void wv_buf_trim(struct wv_buf *buf)
{
    if (wv_buf_len(buf) > 0 || buf->cap <= KEEP)
        return;
    free(buf->data);
    buf->data = NULL;
    buf->head = buf->tail = buf->cap = 0;
}
