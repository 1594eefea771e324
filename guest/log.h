/* log.h - what a process wrote: its first bytes and its last ones
 *
 * Offsets count the bytes of the process over all its sources, in the order read. The
 * head keeps the first of them, the tail is a ring of the last ones; what is between is
 * gone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_LOG_H
#define WV_GUEST_LOG_H

#include <stddef.h>
#include <stdint.h>

#define WV_LOG_SOURCES 4 /* enum wv_source is 1..3 */

/* Where the source changes: offset << 2 | source. A ring, oldest first. */
struct wv_runs {
    uint64_t *v;
    uint32_t first, n, cap, max;
};

/* Bytes from..to; offset o is at data[(o - base) % cap]. */
struct wv_span {
    uint8_t *data;
    size_t cap, max;
    uint64_t base, from, to;
    struct wv_runs runs;
};

struct wv_log {
    struct wv_span head, tail;
    int head_full;
    uint64_t total; /* offset of the next byte */
    uint64_t count[WV_LOG_SOURCES];
    size_t *used; /* bytes of all logs, kept up to date here */
    size_t limit; /* for them: growing stops there */
};

/* 0 for a size means the usual one. Nothing is allocated yet. */
void wv_log_init(struct wv_log *log, size_t head, size_t tail, size_t *used,
                 size_t limit);
void wv_log_fini(struct wv_log *log); /* bytes are gone, counts stay */

/* Where to read the next bytes of source to. Nothing from offset keep on is overwritten
 * (UINT64_MAX: anything may go); NULL when that leaves no room, or without memory. */
uint8_t *wv_log_space(struct wv_log *log, uint8_t source, uint64_t keep, size_t *room);
void wv_log_added(struct wv_log *log, uint8_t source, size_t n);

/* The bytes at *at, which moves to the next ones that are kept: how many lie in one
 * piece and come from one source. 0: no more. */
size_t wv_log_peek(const struct wv_log *log, uint64_t *at, uint8_t *source,
                   const uint8_t **data);

#endif
