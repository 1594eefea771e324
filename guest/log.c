/* log.c - what a process wrote: its first bytes and its last ones
 *
 * The bytes are mapped, not from malloc: they are left out of forks, so that an exec
 * parent is cheap to make and holds no other process's output, and they go back at
 * once.
 *
 * SPDX-License-Identifier: MIT */
#include "guest/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD_USUAL 65536u
#define TAIL_USUAL 1048576u
#define SIZE_MAX_ASKED 16777216u
#define FIRST 4096u /* of a head; and what a log gets above the limit */
#define TAIL_FIRST 65536u
#define RUNS_FIRST 16u
#define BYTES_PER_RUN 32u /* so that a writer of single bytes costs at most this more  \
                           */

static void *map(struct wv_log *log, size_t size, int even_so)
{
    void *at;

    if (*log->used + size > log->limit && !even_so)
        return NULL;
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_DONTFORK);
    *log->used += size;
    return at;
}

static void unmap(struct wv_log *log, void *at, size_t size)
{
    if (at == NULL)
        return;
    munmap(at, size);
    *log->used -= size;
}

static size_t whole_pages(size_t size, size_t usual)
{
    if (size == 0)
        size = usual;
    if (size > SIZE_MAX_ASKED)
        size = SIZE_MAX_ASKED;
    return (size + 4095) & ~(size_t)4095;
}

static void span_init(struct wv_span *span, size_t max)
{
    size_t runs = max / BYTES_PER_RUN;

    *span = (struct wv_span){.max = max};
    span->runs.max = runs > RUNS_FIRST ? (uint32_t)runs : RUNS_FIRST;
}

void wv_log_init(struct wv_log *log, size_t head, size_t tail, size_t *used,
                 size_t limit)
{
    *log = (struct wv_log){.used = used, .limit = limit};
    span_init(&log->head, whole_pages(head, HEAD_USUAL));
    span_init(&log->tail, whole_pages(tail, TAIL_USUAL));
}

static void span_fini(struct wv_log *log, struct wv_span *span)
{
    unmap(log, span->data, span->cap);
    free(span->runs.v);
    *log->used -= span->runs.cap * sizeof *span->runs.v;
    span_init(span, span->max);
    span->base = span->from = span->to = log->total;
}

void wv_log_fini(struct wv_log *log)
{
    span_fini(log, &log->head);
    span_fini(log, &log->tail);
    log->head_full = 1;
}

/* --- runs ----------------------------------------------------------------------- */

static uint64_t run_at(const struct wv_runs *runs, uint32_t i)
{
    return runs->v[(runs->first + i) % runs->cap];
}

static uint8_t last_source(const struct wv_runs *runs)
{
    return runs->n > 0 ? run_at(runs, runs->n - 1) & 3u : 0;
}

/* Room for one more run, without dropping any. */
static int runs_grow(struct wv_log *log, struct wv_runs *runs)
{
    uint32_t cap = runs->cap > 0 ? runs->cap * 4 : RUNS_FIRST;
    uint64_t *v;

    if (runs->n < runs->cap)
        return 0;
    if (cap > runs->max)
        cap = runs->max;
    if (cap <= runs->cap || (runs->cap > 0 && *log->used >= log->limit) ||
        (v = malloc(cap * sizeof *v)) == NULL)
        return -1;
    for (uint32_t i = 0; i < runs->n; i++)
        v[i] = run_at(runs, i);
    free(runs->v);
    *log->used += (cap - runs->cap) * sizeof *v;
    runs->v = v;
    runs->cap = cap;
    runs->first = 0;
    return 0;
}

/* Index of the run that holds offset. */
static uint32_t run_find(const struct wv_runs *runs, uint64_t offset)
{
    uint32_t low = 0, high = runs->n;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (run_at(runs, mid) >> 2 <= offset)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Forget what is before from. */
static void span_cut(struct wv_span *span, uint64_t from)
{
    struct wv_runs *runs = &span->runs;

    span->from = from;
    while (runs->n > 1 && run_at(runs, 1) >> 2 <= from) {
        runs->first = (runs->first + 1) % runs->cap;
        runs->n--;
    }
}

/* --- room ----------------------------------------------------------------------- */

static int span_grow(struct wv_log *log, struct wv_span *span, size_t first)
{
    size_t cap = span->cap > 0 ? span->cap * 4 : first;
    uint8_t *data;

    if (cap > span->max)
        cap = span->max;
    if (cap <= span->cap)
        return -1;
    data = map(log, cap, 0);
    if (data == NULL && span->cap == 0) {
        /* Above the session's limit every log still gets a page to read into. */
        cap = FIRST;
        data = map(log, cap, 1);
    }
    if (data == NULL)
        return -1;
    for (uint64_t at = span->from; at < span->to;) {
        size_t pos = (size_t)((at - span->base) % span->cap);
        size_t n = span->cap - pos;

        if (n > span->to - at)
            n = (size_t)(span->to - at);
        memcpy(data + (at - span->from), span->data + pos, n);
        at += n;
    }
    unmap(log, span->data, span->cap);
    span->data = data;
    span->cap = cap;
    span->base = span->from;
    return 0;
}

static uint8_t *head_space(struct wv_log *log, uint8_t source, size_t *room)
{
    struct wv_span *head = &log->head;

    if (head->to == head->cap && span_grow(log, head, FIRST) < 0)
        return NULL;
    if (last_source(&head->runs) != source && runs_grow(log, &head->runs) < 0)
        return NULL;
    *room = head->cap - (size_t)head->to;
    return head->data + head->to;
}

uint8_t *wv_log_space(struct wv_log *log, uint8_t source, uint64_t keep, size_t *room)
{
    struct wv_span *tail = &log->tail;
    size_t used, pos;
    uint8_t *at;

    if (!log->head_full && (at = head_space(log, source, room)) != NULL)
        return at;
    if (!log->head_full) {
        log->head_full = 1;
        tail->base = tail->from = tail->to = log->total;
    }
    if (tail->to - tail->from == tail->cap && span_grow(log, tail, TAIL_FIRST) < 0 &&
        tail->cap == 0)
        return NULL;
    if (last_source(&tail->runs) != source && runs_grow(log, &tail->runs) < 0) {
        /* Full of runs: the oldest makes room, with its bytes. */
        uint64_t cut;

        if (tail->runs.n < 2 || (cut = run_at(&tail->runs, 1) >> 2) > keep)
            return NULL;
        span_cut(tail, cut);
    }
    if (keep < tail->from)
        keep = tail->from;
    used = keep < tail->to ? (size_t)(tail->to - keep) : 0;
    if (used == tail->cap)
        return NULL;
    pos = (size_t)((tail->to - tail->base) % tail->cap);
    *room = tail->cap - used;
    if (*room > tail->cap - pos)
        *room = tail->cap - pos;
    return tail->data + pos;
}

void wv_log_added(struct wv_log *log, uint8_t source, size_t n)
{
    struct wv_span *span = log->head_full ? &log->tail : &log->head;
    struct wv_runs *runs = &span->runs;

    if (n == 0)
        return;
    if (last_source(runs) != source) {
        runs->v[(runs->first + runs->n) % runs->cap] = log->total << 2 | source;
        runs->n++;
    }
    log->total += n;
    log->count[source] += n;
    span->to += n;
    if (span->to - span->from > span->cap)
        span_cut(span, span->to - span->cap);
}

size_t wv_log_peek(const struct wv_log *log, uint64_t *at, uint8_t *source,
                   const uint8_t **data)
{
    const struct wv_span *span = &log->head;
    uint64_t end;
    uint32_t run;
    size_t pos;

    if (*at >= log->total)
        return 0;
    if (*at < span->from || *at >= span->to)
        span = &log->tail;
    if (*at < span->from)
        *at = span->from;
    if (*at >= span->to) {
        *at = log->total;
        return 0;
    }
    run = run_find(&span->runs, *at);
    *source = run_at(&span->runs, run) & 3u;
    end = run + 1 < span->runs.n ? run_at(&span->runs, run + 1) >> 2 : span->to;
    pos = (size_t)((*at - span->base) % span->cap);
    *data = span->data + pos;
    if (end - *at > span->cap - pos)
        return span->cap - pos;
    return (size_t)(end - *at);
}
