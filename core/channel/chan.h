/* chan.h - one multiplexed connection: streams, credit, and what may come when. Sans-IO.
 *
 * Theory of operation. A chan turns bytes into checked messages and back; it never reads,
 * writes, waits or logs. The opener side (host, client) opens streams; each request is one
 * stream, and the row of its message in wire/msg.def says which messages may follow and
 * which of them ends it. Anything else is WV_EPROTOCOL and the connection is over. Messages
 * marked DATA cost the sender credit: WV_WINDOW bytes a stream at first, then what CREDIT
 * grants as the receiver consumes. So a noisy stream can neither starve the others nor
 * make either side's memory grow.
 *
 * Descriptors ride beside the bytes (SCM_RIGHTS) and are claimed in order by the messages
 * marked FD. A client that passes any sends its pidfd with HELLO.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CHANNEL_CHAN_H
#define WV_CHANNEL_CHAN_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/msg.h"

#define WV_STREAMS 256u       /* requests under way at once on a session's connection */
#define WV_CONTROL_STREAMS 2048u /* and on a control connection: each session is one */
#define WV_WINDOW 262144u     /* credit of a stream at first, and the most it ever is */
#define WV_OUT_MAX 1048576u   /* bytes waiting to be sent */
#define WV_FDS_PENDING 16u    /* descriptors on their way, either direction */
#define WV_TURN_FRAMES 256    /* frames to take before it is somebody else's turn */

enum wv_side { WV_HOST, WV_GUEST, WV_CLIENT, WV_SUPERVISOR };

struct wv_stream {
    uint32_t id;      /* 0: free */
    uint8_t opener;   /* type of the message that opened it */
    uint8_t phase;    /* WV_WAIT or WV_LIVE */
    uint32_t credit;  /* DATA bytes we may still send */
    uint32_t window;  /* DATA bytes the peer may still send */
    uint32_t owed;    /* consumed, not yet granted back */
    void *user;       /* the caller's */
};

/* A descriptor that goes out with the byte at offset `at` of everything ever queued. */
struct wv_out_fd {
    uint64_t at;
    int fd;
};

struct wv_chan {
    enum wv_side side;
    uint8_t dead;            /* a protocol error was seen: nothing more is taken */
    uint8_t greeted;         /* the peer's HELLO was seen */
    uint32_t last_id;        /* highest stream id opened so far */
    uint32_t nstreams;
    struct wv_buf in, out;
    uint64_t out_total;      /* bytes ever queued; out holds the last of them */
    struct wv_buf part;      /* a message that spans frames */
    uint32_t part_stream;
    uint8_t part_type;       /* 0: none */
    uint8_t part_done;       /* it is whole and was handed out: forget it */
    struct wv_out_fd out_fds[WV_FDS_PENDING];
    uint8_t n_out_fds;
    int in_fds[WV_FDS_PENDING]; /* received, not yet claimed by a message */
    uint8_t n_in_fds;
    size_t eaten;            /* bytes of in to drop at the next call */
    size_t burst;            /* bytes queued since out was last empty */
    uint8_t hot;             /* the last read was large: read large again */
    uint8_t owing;           /* some stream's CREDIT found no room and waits */
    uint32_t slots;          /* how many streams there is room for */
    struct wv_stream *streams; /* stream id is in slot id % slots */
    struct wv_stream none;   /* stands in when there was no memory for the table */
};

struct wv_event {
    uint8_t type;             /* enum wv_type */
    uint32_t stream;          /* 0: the connection */
    void *user;               /* the stream's, as it was before a closing message */
    uint8_t closed;           /* 1: this message ended the stream */
    int fd;                   /* a descriptor that came with it (yours now), or -1 */
    union wv_msg msg;         /* strings point into the chan: valid until the next call */
};

/* Without memory the chan is dead from the start. */
void wv_chan_init(struct wv_chan *chan, enum wv_side side);
void wv_chan_fini(struct wv_chan *chan); /* closes descriptors that were not claimed */

/* --- bytes in ------------------------------------------------------------------- */

/* Where to read bytes to, and how many fit; NULL when what is there must be taken first. */
uint8_t *wv_chan_space(struct wv_chan *chan, size_t *room);
void wv_chan_filled(struct wv_chan *chan, size_t n);
int wv_chan_give_fd(struct wv_chan *chan, int fd); /* owns fd; WV_EPROTOCOL if unexpected */
int wv_chan_wants_fd(const struct wv_chan *chan);  /* receive with room for one, or not */

/* 1 and an event, 0 when more bytes are needed, negative for a peer that broke the rules. */
int wv_chan_next(struct wv_chan *chan, struct wv_event *event, struct wv_err *err);

/* The receiver has consumed n DATA bytes of stream: may queue a CREDIT. */
void wv_chan_consumed(struct wv_chan *chan, uint32_t stream, uint32_t n);

/* --- messages out --------------------------------------------------------------- */

/* Open a stream with its opening message; returns the id (> 0), or WV_ECAPACITY when
 * all slots are in use, WV_EAGAIN when the out queue is full, WV_EINVALID (field set). */
long wv_chan_open(struct wv_chan *chan, uint8_t type, const void *msg, int fd, void *user,
                  struct wv_err *err);

/* Send a message on a stream (0: connection). A message that closes the stream frees it.
 * WV_EAGAIN: out queue full, or DATA without credit; nothing was queued then. A descriptor
 * (or -1) is closed after it was sent. WV_ECLOSED: the stream is gone. */
int wv_chan_send(struct wv_chan *chan, uint32_t stream, uint8_t type, const void *msg,
                 int fd, struct wv_err *err);

/* DATA bytes that stream may send now (credit and room in the out queue). */
uint32_t wv_chan_may_send(const struct wv_chan *chan, uint32_t stream);

/* Bytes to write now (NULL: none) and a descriptor to attach to the first of them. */
const uint8_t *wv_chan_pending(const struct wv_chan *chan, size_t *n, int *fd);
void wv_chan_sent(struct wv_chan *chan, size_t n); /* closes descriptors that went */

/* --- streams -------------------------------------------------------------------- */

struct wv_stream *wv_chan_stream(struct wv_chan *chan, uint32_t id); /* NULL: not open */

/* --- the transport: a non-blocking stream socket --------------------------------- */

/* Read until it would block or the input is full. 1: something came, 0: nothing now,
 * WV_ELOST: end of file or reset. */
int wv_chan_read(struct wv_chan *chan, int sock, struct wv_err *err);

/* Send a DATA message whose tail is the caller's: where nothing waits to go out before it,
 * it is written from there, and only what the socket did not take is copied. As
 * wv_chan_send otherwise. */
int wv_chan_send_from(struct wv_chan *chan, int sock, uint32_t stream, uint8_t type,
                      const void *msg, struct wv_err *err);

/* Write until it would block or nothing is left. 1: all is out, 0: more waits. */
int wv_chan_write(struct wv_chan *chan, int sock, struct wv_err *err);

#endif
