/* follow.h - streams that wait for a process: its output, its end, or both
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_FOLLOW_H
#define WV_GUEST_FOLLOW_H

#include "guest/process.h"

struct wv_follower {
    struct wv_follower *next; /* of the same process */
    struct wv_follower *next_of_conn;
    struct wv_process *process;
    struct wv_conn *conn;
    uint32_t stream;
    uint8_t opener;    /* START, ATTACH or FOLLOW */
    uint8_t live;      /* START, ATTACH: STARTED was sent */
    uint8_t output;    /* wants OUTPUT */
    uint8_t lossless;  /* the process waits for this one */
    uint8_t owner;     /* the tree dies with it */
    uint8_t gone_told; /* STDIN_GONE was sent */
    uint64_t at;       /* next offset to send */
    uint64_t until;    /* the end, once the process has ended */
};

struct wv_follower *wv_follow(struct wv_process *p, struct wv_conn *conn,
                              uint32_t stream, uint8_t opener, struct wv_err *err);

/* Send what there is and what fits; the last message of its stream frees the follower.
 */
void wv_follow_pump(struct wv_follower *f);
void wv_follow_pump_process(struct wv_process *p);
void wv_follow_pump_conn(struct wv_conn *conn);

void wv_follow_started(struct wv_process *p);
void wv_follow_failed(struct wv_process *p, const struct wv_err *err,
                      const char *reason);
void wv_follow_ended(struct wv_process *p);
void wv_follow_stdin_gone(struct wv_process *p);

/* The host wants no more of this stream, or its connection is gone. */
void wv_follow_cancel(struct wv_follower *f);
void wv_follow_lost(struct wv_conn *conn);

/* Nothing from this offset on may be overwritten; UINT64_MAX: anything may. */
uint64_t wv_follow_floor(const struct wv_process *p);

#endif
