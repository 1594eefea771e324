/* keep.h - the output of a process in bounded memory: whole, or first and last bytes
 *
 * Up to cap bytes of both streams together everything is kept. The byte that passes cap
 * turns each stream into its first cap/8 and its last cap/8 bytes, and the rest is only
 * counted. So never more than cap is held, and at the end at most cap/2: a copy of it
 * may then be made without passing cap either.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CLIENT_KEEP_H
#define WV_CLIENT_KEEP_H

#include <stddef.h>
#include <stdint.h>

struct wv_keep_stream {
    uint8_t *data;
    size_t len, room;
    size_t at;        /* where the oldest byte of the last part is, behind the first */
    uint64_t missing; /* bytes between the first and the last part */
};

struct wv_keep {
    size_t cap, part; /* part: cap/8 */
    uint8_t cut;      /* cap was passed */
    uint64_t total;   /* bytes ever added */
    uint64_t offset;  /* of the next byte, as the agent counts */
    uint64_t gap;     /* bytes that never came here */
    struct wv_keep_stream out, err;
};

void wv_keep_init(struct wv_keep *keep, size_t cap);
void wv_keep_fini(struct wv_keep *keep);

/* Source is enum wv_source; a terminal's bytes count as stdout. Never fails: what finds
 * no memory is missing. */
void wv_keep_add(struct wv_keep *keep, int source, const void *data, size_t n);

/* The same for bytes with their place in the process's output. */
void wv_keep_output(struct wv_keep *keep, int source, uint64_t offset, const void *data,
                    size_t n);

/* Make the bytes of a stream contiguous: data[0..len). */
void wv_keep_join(struct wv_keep *keep, struct wv_keep_stream *stream);

/* Forget a stream's bytes and give its memory back. */
void wv_keep_forget(struct wv_keep_stream *stream);

#endif
