/* keep.c - the output of a process in bounded memory
 *
 * A stream is one block: first part, then the last part as a ring. Large blocks are
 * mappings of their own, because growing one by mremap copies nothing and shrinking it
 * gives the memory back at once, whatever the allocator of the host thinks.
 *
 * SPDX-License-Identifier: MIT */
#include "client/keep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/msg.h"

#define FIRST 1024u
#define MAPPED 131072u /* blocks from here on are mappings */

void wv_keep_init(struct wv_keep *keep, size_t cap)
{
    *keep = (struct wv_keep){.cap = cap, .part = cap / 8};
}

void wv_keep_forget(struct wv_keep_stream *stream)
{
    if (stream->room >= MAPPED)
        munmap(stream->data, stream->room);
    else
        free(stream->data);
    *stream = (struct wv_keep_stream){0};
}

void wv_keep_fini(struct wv_keep *keep)
{
    wv_keep_forget(&keep->out);
    wv_keep_forget(&keep->err);
}

/* Give the block exactly room bytes (at least len): 0, or -1 and it is as before. */
static int resize(struct wv_keep_stream *stream, size_t room)
{
    void *data;

    if (room < MAPPED) {
        if (stream->room >= MAPPED)
            return 0; /* shrunk below a mapping's size: not worth a copy */
        data = realloc(stream->data, room > 0 ? room : 1);
        if (data == NULL)
            return -1;
    } else if (stream->room >= MAPPED) {
        data = mremap(stream->data, stream->room, room, MREMAP_MAYMOVE);
        if (data == MAP_FAILED)
            return -1;
    } else {
        data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
        if (data == MAP_FAILED)
            return -1;
        if (stream->len > 0)
            memcpy(data, stream->data, stream->len);
        free(stream->data);
    }
    stream->data = data;
    stream->room = room;
    return 0;
}

/* Append as much of data as fits below limit; returns how much that was. */
static size_t append(struct wv_keep_stream *stream, const uint8_t *data, size_t n,
                     size_t limit)
{
    size_t room = stream->room > 0 ? stream->room : FIRST;

    if (n > limit - stream->len)
        n = limit - stream->len;
    while (room < stream->len + n)
        room *= 2;
    if (room > limit && stream->room < limit)
        room = limit;
    if (n == 0 || (room > stream->room && resize(stream, room) < 0))
        return 0;
    memcpy(stream->data + stream->len, data, n);
    stream->len += n;
    return n;
}

/* Overwrite the oldest bytes of the last part. */
static void roll(struct wv_keep_stream *stream, size_t part, const uint8_t *data,
                 size_t n)
{
    uint8_t *ring = stream->data + part;

    stream->missing += n;
    if (n > part) {
        data += n - part;
        n = part;
    }
    while (n > 0) {
        size_t run = part - stream->at < n ? part - stream->at : n;

        memcpy(ring + stream->at, data, run);
        stream->at = (stream->at + run) % part;
        data += run;
        n -= run;
    }
}

/* From whole to first and last. */
static void cut(struct wv_keep_stream *stream, size_t part)
{
    if (stream->len <= 2 * part)
        return;
    memmove(stream->data + part, stream->data + stream->len - part, part);
    stream->missing = stream->len - 2 * part;
    stream->len = 2 * part;
    resize(stream, stream->len);
}

void wv_keep_add(struct wv_keep *keep, int source, const void *data, size_t n)
{
    struct wv_keep_stream *stream =
        source == WV_SOURCE_STDERR ? &keep->err : &keep->out;
    const uint8_t *at = data;
    size_t limit = keep->cap, done;

    keep->total += n;
    if (!keep->cut && keep->total > keep->cap) {
        keep->cut = 1;
        cut(&keep->out, keep->part);
        cut(&keep->err, keep->part);
    }
    if (keep->cut)
        limit = 2 * keep->part;
    done = append(stream, at, n, limit);
    if (done == n)
        return;
    if (stream->len < 2 * keep->part || keep->part == 0 || !keep->cut)
        stream->missing += n - done; /* no memory, or too little to keep a tail in */
    else
        roll(stream, keep->part, at + done, n - done);
}

void wv_keep_output(struct wv_keep *keep, int source, uint64_t offset, const void *data,
                    size_t n)
{
    if (offset > keep->offset)
        keep->gap += offset - keep->offset;
    keep->offset = offset + n;
    wv_keep_add(keep, source, data, n);
}

static void reverse(uint8_t *data, size_t n)
{
    for (size_t i = 0, j = n; i + 1 < j; i++) {
        uint8_t byte = data[--j];

        data[j] = data[i];
        data[i] = byte;
    }
}

void wv_keep_join(struct wv_keep *keep, struct wv_keep_stream *stream)
{
    uint8_t *ring;

    if (stream->at == 0)
        return;
    ring = stream->data + keep->part;
    reverse(ring, stream->at);
    reverse(ring + stream->at, keep->part - stream->at);
    reverse(ring, keep->part);
    stream->at = 0;
}
