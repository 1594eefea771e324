/* out.c - outgoing messages, credit, and descriptors on their way out
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "channel/rules.h"

/* DATA may fill half of the queue, so that there is always room for a word about it. */
#define DATA_MAX (WV_OUT_MAX / 2u)

/* Encode msg to the end of the queue, in as many frames as it needs. */
static int enqueue(struct wv_chan *chan, const struct wv_msg_def *def, uint32_t stream,
                   const void *msg, int fd, struct wv_err *err)
{
    long size = wv_msg_size(def->type, msg, err);
    size_t frames, total;
    uint8_t *at;

    if (size < 0)
        return (int)size;
    frames = size == 0 ? 1 : ((size_t)size + WV_FRAME_MAX - 1) / WV_FRAME_MAX;
    total = (size_t)size + frames * WV_FRAME_HEAD;
    if ((def->flags & WV_DATA) != 0 && wv_buf_len(&chan->out) + total > DATA_MAX)
        return wv_fail(err, WV_EAGAIN, "channel", "the queue is full");
    if (fd >= 0 && chan->n_out_fds == WV_FDS_PENDING)
        return wv_fail(err, WV_EAGAIN, "channel", "descriptors wait to be sent");
    at = wv_buf_room(&chan->out, total);
    if (at == NULL)
        return wv_fail(err, WV_EAGAIN, "channel", "the queue is full");

    /* The payload goes to its final place behind the first header; where it spans frames,
     * the later parts move up to make room for their headers, last part first. */
    wv_msg_put(def->type, msg, at + WV_FRAME_HEAD);
    for (size_t i = frames; i-- > 0;) {
        size_t from = i * WV_FRAME_MAX;
        size_t len = i + 1 < frames ? WV_FRAME_MAX : (size_t)size - from;
        uint8_t *head = at + from + i * WV_FRAME_HEAD;
        struct wv_frame frame = {
            .len = (uint32_t)len,
            .type = def->type,
            .more = i + 1 < frames,
            .stream = stream,
        };

        if (i > 0)
            memmove(head + WV_FRAME_HEAD, at + WV_FRAME_HEAD + from, len);
        wv_frame_put(head, &frame);
    }
    if (fd >= 0)
        chan->out_fds[chan->n_out_fds++] = (struct wv_out_fd){chan->out_total, fd};
    wv_buf_added(&chan->out, total);
    chan->out_total += total;
    chan->burst += total;
    return 0;
}

void wv_chan_queue(struct wv_chan *chan, const void *data, size_t n)
{
    if (wv_buf_add(&chan->out, data, n) < 0) {
        chan->dead = 1; /* out of memory in the middle of a frame: nothing can follow */
        return;
    }
    chan->out_total += n;
    chan->burst += n;
}

long wv_chan_open(struct wv_chan *chan, uint8_t type, const void *msg, int fd, void *user,
                  struct wv_err *err)
{
    const struct wv_msg_def *def = wv_msg_def(type);
    uint32_t id = chan->last_id;
    int rc;

    if (chan->dead)
        return wv_fail(err, WV_ECLOSED, "channel", "the channel is over");
    if (def == NULL || (def->on & WV_ON_SELF) == 0 || !(def->from & wv_rule_side(chan->side)))
        return wv_fail(err, WV_EINVALID, "channel", "message %u opens no stream", type);
    if (chan->nstreams == chan->slots)
        return wv_fail(err, WV_ECAPACITY, "channel", "%u requests are under way",
                       chan->slots);
    do {
        if (id == INT32_MAX)
            return wv_fail(err, WV_ECAPACITY, "channel", "no stream ids are left");
        id++;
    } while (chan->streams[id % chan->slots].id != 0);
    if ((rc = enqueue(chan, def, id, msg, fd, err)) < 0)
        return rc;
    wv_rule_open(chan, id, type, user);
    return (long)id;
}

int wv_chan_send(struct wv_chan *chan, uint32_t id, uint8_t type, const void *msg, int fd,
                 struct wv_err *err)
{
    const struct wv_msg_def *def = wv_msg_def(type);
    struct wv_stream *stream = wv_chan_stream(chan, id);
    int rc;

    if (chan->dead || (id != 0 && stream == NULL))
        return wv_fail(err, WV_ECLOSED, "channel", "the stream is gone");
    if (def == NULL || (def->from & wv_rule_side(chan->side)) == 0 ||
        (def->on & WV_ON_SELF) != 0)
        return wv_fail(err, WV_EINVALID, "channel", "message %u is not ours", type);
    if (stream != NULL && !wv_rule_allows(def, stream))
        return wv_fail(err, WV_EINVALID, "channel", "%s not in this state", def->name);
    if (stream != NULL && (def->flags & WV_DATA) != 0 && wv_rule_data_len(def, msg) > stream->credit)
        return wv_fail(err, WV_EAGAIN, "channel", "no credit");
    if ((rc = enqueue(chan, def, id, msg, fd, err)) < 0)
        return rc;
    if (stream == NULL)
        return 0;
    if ((def->flags & WV_DATA) != 0)
        stream->credit -= wv_rule_data_len(def, msg);
    wv_rule_move(chan, stream, def->next);
    return 0;
}

uint32_t wv_chan_may_send(const struct wv_chan *chan, uint32_t id)
{
    const struct wv_stream *stream = &chan->streams[id % chan->slots];
    size_t used = wv_buf_len(&chan->out) + 64; /* the header and fixed fields */
    size_t room = used < DATA_MAX ? DATA_MAX - used : 0;

    if (id == 0 || stream->id != id || chan->dead)
        return 0;
    return room < stream->credit ? (uint32_t)room : stream->credit;
}

/* Grant what stream has consumed. */
static void grant(struct wv_chan *chan, struct wv_stream *stream)
{
    struct wv_msg_CREDIT credit = {.bytes = stream->owed};

    if (wv_chan_send(chan, stream->id, WV_MSG_CREDIT, &credit, -1, NULL) < 0) {
        chan->owing = 1;
        return;
    }
    stream->window += stream->owed;
    stream->owed = 0;
}

void wv_chan_consumed(struct wv_chan *chan, uint32_t id, uint32_t n)
{
    struct wv_stream *stream = wv_chan_stream(chan, id);

    if (stream == NULL)
        return;
    stream->owed += n;
    if (stream->owed >= WV_WINDOW / 4)
        grant(chan, stream);
}

const uint8_t *wv_chan_pending(const struct wv_chan *chan, size_t *n, int *fd)
{
    size_t len = wv_buf_len(&chan->out);
    uint64_t start = chan->out_total - len;

    *fd = -1;
    *n = len;
    for (size_t i = 0; i < chan->n_out_fds; i++) {
        if (chan->out_fds[i].at == start) {
            *fd = chan->out_fds[i].fd;
        } else {
            *n = (size_t)(chan->out_fds[i].at - start);
            break;
        }
    }
    return len > 0 ? wv_buf_ptr(&chan->out) : NULL;
}

void wv_chan_sent(struct wv_chan *chan, size_t n)
{
    uint64_t start = chan->out_total - wv_buf_len(&chan->out);

    if (n == 0)
        return;
    if (chan->n_out_fds > 0 && chan->out_fds[0].at == start) {
        close(chan->out_fds[0].fd);
        chan->n_out_fds--;
        memmove(chan->out_fds, chan->out_fds + 1,
                chan->n_out_fds * sizeof chan->out_fds[0]);
    }
    wv_buf_eat(&chan->out, n);
    if (wv_buf_len(&chan->out) > 0)
        return;
    if (chan->burst < WV_FRAME_MAX)
        wv_buf_trim(&chan->out);
    chan->burst = 0;
    if (!chan->owing)
        return;
    chan->owing = 0;
    for (size_t i = 0; i < chan->slots; i++)
        if (chan->streams[i].id != 0 && chan->streams[i].owed >= WV_WINDOW / 4)
            grant(chan, &chan->streams[i]);
}
