/* rules.h - reading the rows of wire/msg.def: who, where, how much. Inside channel/ only.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CHANNEL_RULES_H
#define WV_CHANNEL_RULES_H

#include "channel/chan.h"

/* The bit of a row's `from` that stands for this side. */
static inline uint8_t wv_rule_side(enum wv_side side)
{
    static const uint8_t bits[] = {
        [WV_HOST] = WV_FROM_H,
        [WV_GUEST] = WV_FROM_G,
        [WV_CLIENT] = WV_FROM_C,
        [WV_SUPERVISOR] = WV_FROM_S,
    };

    return bits[side];
}

static inline uint8_t wv_rule_peer(enum wv_side side)
{
    static const enum wv_side peers[] = {
        [WV_HOST] = WV_GUEST,
        [WV_GUEST] = WV_HOST,
        [WV_CLIENT] = WV_SUPERVISOR,
        [WV_SUPERVISOR] = WV_CLIENT,
    };

    return wv_rule_side(peers[side]);
}

/* May this message come on this stream in its present phase? */
static inline int wv_rule_allows(const struct wv_msg_def *def,
                                 const struct wv_stream *stream)
{
    if ((def->on & WV_ON_ANY) == 0 && (def->on & WV_ON_OPENER(stream->opener)) == 0)
        return 0;
    return (def->phase & stream->phase) != 0;
}

/* Bytes of a DATA message that cost credit: its tail, always the last field. */
static inline uint32_t wv_rule_data_len(const struct wv_msg_def *def, const void *msg)
{
    const struct wv_field *tail = &def->fields[def->nfields - 1];
    const struct wv_str *data = (const void *)((const char *)msg + tail->offset);

    return data->len;
}

struct wv_stream *wv_rule_open(struct wv_chan *chan, uint32_t id, uint8_t opener,
                               void *user);

/* Queue bytes that are encoded already; the queue is empty or holds what is before them,
 * and a frame always fits behind that. */
void wv_chan_queue(struct wv_chan *chan, const void *data, size_t n);
void wv_rule_move(struct wv_chan *chan, struct wv_stream *stream, uint8_t next);

#endif
