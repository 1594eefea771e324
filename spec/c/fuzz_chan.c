/* fuzz_chan.c - any bytes as a peer, on all four sides, in pieces, with answers
 *
 * The first byte picks the side and how the input is cut; a byte per event decides what
 * we do about it (grant credit, answer, open more), so that streams come and go.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "channel/chan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void act(struct wv_chan *chan, const struct wv_event *event, uint8_t choice)
{
    union wv_msg msg;
    size_t n;
    int fd;

    memset(&msg, 0, sizeof msg);
    wv_chan_consumed(chan, event->stream, choice * 512u);
    wv_chan_send(chan, event->stream, choice & 0x7f, &msg, -1, NULL);
    wv_chan_open(chan, (uint8_t)(choice ^ 0x30), &msg, -1, chan, NULL);
    if (wv_chan_pending(chan, &n, &fd) != NULL)
        wv_chan_sent(chan, n / 2 + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const uint8_t hello[] = {16, 0, 0, WV_MSG_HELLO, 0, 0, 0, 0};
    struct wv_chan chan;
    struct wv_event event;
    struct wv_msg_START start = {0};
    struct wv_msg_OPEN open_msg = {0};
    size_t used = 1, room;
    uint8_t *space;

    if (len < 1)
        return 0;
    wv_chan_init(&chan, data[0] & 3);
    space = wv_chan_space(&chan, &room);
    memcpy(space, hello, sizeof hello);
    memset(space + sizeof hello, 0, 16);
    wv_chan_filled(&chan, sizeof hello + 16);
    for (int i = 0; i < 4; i++) {
        wv_chan_open(&chan, WV_MSG_START, &start, -1, &chan, NULL);
        wv_chan_open(&chan, WV_MSG_OPEN, &open_msg, -1, &chan, NULL);
    }
    while (used < len || wv_buf_len(&chan.in) > chan.eaten) {
        size_t n = 1u + (data[0] >> 2) * 4u;
        int rc;

        space = wv_chan_space(&chan, &room);
        if (n > len - used)
            n = len - used;
        if (n > room)
            n = room;
        if (space != NULL && n > 0) {
            memcpy(space, data + used, n);
            wv_chan_filled(&chan, n);
            used += n;
        }
        while ((rc = wv_chan_next(&chan, &event, NULL)) == 1)
            act(&chan, &event, data[(used + event.stream) % len]);
        if (rc < 0 || n == 0)
            break;
        if (chan.nstreams > chan.slots || wv_buf_len(&chan.out) > WV_OUT_MAX)
            abort();
    }
    wv_chan_fini(&chan);
    return 0;
}
