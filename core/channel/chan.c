/* chan.c - one multiplexed connection: streams and incoming messages
 *
 * SPDX-License-Identifier: MIT */
#include "channel/chan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "channel/rules.h"

#define IN_MAX 262144u     /* input that waits to be taken; holds more than one frame */
#define READ_COOL 16384u   /* how much to read at once from a quiet peer */

void wv_chan_init(struct wv_chan *chan, enum wv_side side)
{
    memset(chan, 0, sizeof *chan);
    chan->side = side;
    chan->slots = side == WV_HOST || side == WV_GUEST ? WV_STREAMS : WV_CONTROL_STREAMS;
    chan->streams = calloc(chan->slots, sizeof *chan->streams);
    if (chan->streams == NULL) {
        chan->dead = 1;
        chan->slots = 1;
        chan->streams = &chan->none;
    }
    wv_buf_init(&chan->in, IN_MAX);
    wv_buf_init(&chan->out, WV_OUT_MAX);
    wv_buf_init(&chan->part, WV_MESSAGE_MAX);
}

void wv_chan_fini(struct wv_chan *chan)
{
    while (chan->n_out_fds > 0)
        close(chan->out_fds[--chan->n_out_fds].fd);
    while (chan->n_in_fds > 0)
        close(chan->in_fds[--chan->n_in_fds]);
    wv_buf_fini(&chan->in);
    wv_buf_fini(&chan->out);
    wv_buf_fini(&chan->part);
    if (chan->streams != &chan->none)
        free(chan->streams);
    chan->slots = 1;
    chan->streams = &chan->none;
    chan->dead = 1;
}

struct wv_stream *wv_chan_stream(struct wv_chan *chan, uint32_t id)
{
    struct wv_stream *stream = &chan->streams[id % chan->slots];

    return id != 0 && stream->id == id ? stream : NULL;
}

static int is_server(const struct wv_chan *chan)
{
    return chan->side == WV_GUEST || chan->side == WV_SUPERVISOR;
}

/* --- bytes in ------------------------------------------------------------------- */

static void drop_eaten(struct wv_chan *chan)
{
    wv_buf_eat(&chan->in, chan->eaten);
    chan->eaten = 0;
    if (!chan->hot)
        wv_buf_trim(&chan->in);
}

uint8_t *wv_chan_space(struct wv_chan *chan, size_t *room)
{
    struct wv_frame frame;
    size_t len, want;

    drop_eaten(chan);
    len = wv_buf_len(&chan->in);
    want = chan->hot ? IN_MAX - len : READ_COOL;
    if (wv_frame_get(wv_buf_ptr(&chan->in), len, &frame) > 0 &&
        frame.len + WV_FRAME_HEAD > len && frame.len + WV_FRAME_HEAD - len > want)
        want = frame.len + WV_FRAME_HEAD - len;
    if (want > IN_MAX - len)
        want = IN_MAX - len;
    *room = want;
    return want > 0 && !chan->dead ? wv_buf_room(&chan->in, want) : NULL;
}

void wv_chan_filled(struct wv_chan *chan, size_t n)
{
    wv_buf_added(&chan->in, n);
    chan->hot = n >= READ_COOL;
}

static unsigned streams_opened_by(const struct wv_chan *chan, uint8_t opener)
{
    unsigned n = 0;

    for (size_t i = 0; i < chan->slots; i++)
        n += chan->streams[i].id != 0 && chan->streams[i].opener == opener;
    return n;
}

int wv_chan_wants_fd(const struct wv_chan *chan)
{
    if (chan->side == WV_SUPERVISOR)
        return 1;
    return chan->side == WV_HOST && streams_opened_by(chan, WV_MSG_OPEN_FILE) > 0;
}

int wv_chan_give_fd(struct wv_chan *chan, int fd)
{
    size_t most = WV_FDS_PENDING;

    if (chan->side == WV_HOST)
        most = streams_opened_by(chan, WV_MSG_OPEN_FILE);
    if (chan->n_in_fds >= most || chan->n_in_fds >= WV_FDS_PENDING) {
        close(fd);
        chan->dead = 1;
        return WV_EPROTOCOL;
    }
    chan->in_fds[chan->n_in_fds++] = fd;
    return 0;
}

static int claim_fd(struct wv_chan *chan)
{
    int fd;

    if (chan->n_in_fds == 0)
        return -1;
    fd = chan->in_fds[0];
    chan->n_in_fds--;
    memmove(chan->in_fds, chan->in_fds + 1, chan->n_in_fds * sizeof chan->in_fds[0]);
    return fd;
}

/* --- what may come -------------------------------------------------------------- */

struct wv_stream *wv_rule_open(struct wv_chan *chan, uint32_t id, uint8_t opener,
                               void *user)
{
    struct wv_stream *stream = &chan->streams[id % chan->slots];

    *stream = (struct wv_stream){
        .id = id,
        .opener = opener,
        .phase = WV_WAIT,
        .credit = WV_WINDOW,
        .window = WV_WINDOW,
        .user = user,
    };
    chan->last_id = id;
    chan->nstreams++;
    return stream;
}

void wv_rule_move(struct wv_chan *chan, struct wv_stream *stream, uint8_t next)
{
    if (next == WV_GONE) {
        stream->id = 0;
        chan->nstreams--;
    } else if (next == WV_LIVE) {
        stream->phase = WV_LIVE;
    }
}

static int broke(struct wv_chan *chan, struct wv_err *err, const struct wv_msg_def *def,
                 uint32_t stream, const char *why)
{
    chan->dead = 1;
    return wv_fail(err, WV_EPROTOCOL, "channel", "%s on stream %u: %s",
                   def != NULL ? def->name : "message", stream, why);
}

/* Find or make the stream of a received message. 1: *to is it (NULL: the connection),
 * 0: drop the message, negative: the peer broke the rules. */
static int place(struct wv_chan *chan, const struct wv_msg_def *def, uint32_t id,
                 struct wv_stream **to, struct wv_err *err)
{
    *to = NULL;
    if ((def->from & wv_rule_peer(chan->side)) == 0)
        return broke(chan, err, def, id, "not this side's to send");
    if (chan->greeted == (def->type == WV_MSG_HELLO))
        return broke(chan, err, def, id, "HELLO comes first, and once");
    if (id == 0)
        return (def->on & WV_ON_CONN) != 0 || def->type == WV_MSG_ERROR
                   ? 1
                   : broke(chan, err, def, id, "needs a stream");
    if ((def->on & WV_ON_CONN) != 0)
        return broke(chan, err, def, id, "belongs to the connection");
    if ((def->on & WV_ON_SELF) != 0) {
        if (id <= chan->last_id || id > INT32_MAX ||
            chan->streams[id % chan->slots].id != 0)
            return broke(chan, err, def, id, "this stream id cannot be opened");
        *to = wv_rule_open(chan, id, def->type, NULL);
        return 1;
    }
    *to = wv_chan_stream(chan, id);
    if (*to == NULL)
        return (def->flags & WV_LATE) != 0 && is_server(chan) && id <= chan->last_id
                   ? 0
                   : broke(chan, err, def, id, "the stream is not open");
    return wv_rule_allows(def, *to) ? 1 : broke(chan, err, def, id, "not in this state");
}

/* Book what a received message means for credit. */
static int settle(struct wv_chan *chan, const struct wv_msg_def *def,
                  struct wv_stream *stream, const union wv_msg *msg, struct wv_err *err)
{
    if ((def->flags & WV_DATA) != 0) {
        uint32_t n = wv_rule_data_len(def, msg);

        if (n > stream->window)
            return broke(chan, err, def, stream->id, "more data than its credit");
        stream->window -= n;
    } else if (def->type == WV_MSG_CREDIT) {
        if (msg->CREDIT.bytes > WV_WINDOW - stream->credit)
            return broke(chan, err, def, stream->id, "more credit than was used");
        stream->credit += msg->CREDIT.bytes;
    }
    return 0;
}

/* --- messages in ---------------------------------------------------------------- */

/* The next whole message: 1 and its payload, 0: need more bytes. Messages that span
 * frames are put together in chan->part; their frames follow one another directly. */
static int take_message(struct wv_chan *chan, struct wv_frame *frame,
                        const uint8_t **payload, size_t *len, struct wv_err *err)
{
    for (;;) {
        int head;

        drop_eaten(chan);
        head = wv_frame_get(wv_buf_ptr(&chan->in), wv_buf_len(&chan->in), frame);
        if (head < 0)
            return broke(chan, err, NULL, frame->stream, "a frame is too long");
        if (head == 0 || wv_buf_len(&chan->in) < WV_FRAME_HEAD + frame->len)
            return 0;
        *payload = wv_buf_ptr(&chan->in) + WV_FRAME_HEAD;
        *len = frame->len;
        chan->eaten = WV_FRAME_HEAD + frame->len;
        if (chan->part_type == 0 && !frame->more)
            return 1;
        if (!is_server(chan) || !chan->greeted ||
            (chan->part_type != 0 && (chan->part_type != frame->type ||
                                      chan->part_stream != frame->stream)))
            return broke(chan, err, NULL, frame->stream, "an unexpected partial message");
        if (wv_buf_add(&chan->part, *payload, *len) < 0)
            return broke(chan, err, NULL, frame->stream, "a message is too long");
        chan->part_type = frame->type;
        chan->part_stream = frame->stream;
        if (frame->more)
            continue;
        *payload = wv_buf_ptr(&chan->part);
        *len = wv_buf_len(&chan->part);
        chan->part_done = 1;
        return 1;
    }
}

static void forget_part(struct wv_chan *chan)
{
    chan->part_type = 0;
    chan->part_done = 0;
    wv_buf_eat(&chan->part, wv_buf_len(&chan->part));
    wv_buf_trim(&chan->part);
}

int wv_chan_next(struct wv_chan *chan, struct wv_event *event, struct wv_err *err)
{
    struct wv_frame frame;
    const uint8_t *payload = NULL;
    size_t len = 0;
    int rc;

    if (chan->part_done)
        forget_part(chan);
    while (!chan->dead && (rc = take_message(chan, &frame, &payload, &len, err)) != 0) {
        const struct wv_msg_def *def = wv_msg_def(frame.type);
        struct wv_stream *stream;

        if (rc < 0)
            return rc;
        if (def == NULL)
            return broke(chan, err, NULL, frame.stream, "an unknown type");
        if ((rc = place(chan, def, frame.stream, &stream, err)) < 0)
            return rc;
        if (rc == 0) {
            if (chan->part_done)
                forget_part(chan);
            continue;
        }
        *event = (struct wv_event){.type = frame.type, .stream = frame.stream, .fd = -1};
        if ((rc = wv_msg_get(frame.type, payload, len, &event->msg, err)) < 0) {
            chan->dead = 1;
            return rc;
        }
        if (stream != NULL) {
            if ((rc = settle(chan, def, stream, &event->msg, err)) < 0)
                return rc;
            event->user = stream->user;
            event->closed = def->next == WV_GONE;
            wv_rule_move(chan, stream, def->next);
        }
        if (frame.type == WV_MSG_HELLO)
            chan->greeted = 1;
        if ((def->flags & WV_FD) != 0)
            event->fd = claim_fd(chan);
        return 1;
    }
    return chan->dead ? wv_fail(err, WV_EPROTOCOL, "channel", "the channel is over") : 0;
}
