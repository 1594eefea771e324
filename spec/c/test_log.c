/* test_log.c - the log of a process: head, tail, sources, bounds
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest/log.h"
#include "test.h"

#define LIMIT 16777216u
#define ANY UINT64_MAX

/* What byte offset o of a test log is. */
static uint8_t byte_at(uint64_t o)
{
    return (uint8_t)(o * 31 + (o >> 8) + (o >> 16));
}

/* Write n bytes of source as a reader of pipes would, at most `step` at once; returns
 * what was taken before there was no room. */
static size_t add(struct wv_log *log, uint8_t source, size_t n, size_t step,
                  uint64_t keep)
{
    size_t done = 0;

    while (done < n) {
        size_t room, take;
        uint8_t *space = wv_log_space(log, source, keep, &room);

        if (space == NULL)
            break;
        take = n - done < step ? n - done : step;
        if (take > room)
            take = room;
        for (size_t i = 0; i < take; i++)
            space[i] = byte_at(log->total + i);
        wv_log_added(log, source, take);
        done += take;
    }
    return done;
}

/* Read all from `at` on: bytes seen, 0 where one is wrong; *gap is what was skipped. */
static uint64_t check(const struct wv_log *log, uint64_t at, uint64_t *gap)
{
    uint64_t seen = 0, expected = at;
    const uint8_t *data;
    uint8_t source;
    size_t n;

    *gap = 0;
    while ((n = wv_log_peek(log, &at, &source, &data)) > 0) {
        *gap += at - expected;
        for (size_t i = 0; i < n; i++)
            if (data[i] != byte_at(at + i))
                return 0;
        seen += n;
        at += n;
        expected = at;
    }
    *gap += at - expected;
    return seen;
}

static void test_small(void)
{
    struct wv_log log;
    size_t used = 0;
    uint64_t gap, at = 0;
    const uint8_t *data;
    uint8_t source = 0;

    wv_log_init(&log, 0, 0, &used, LIMIT);
    CHECK(used == 0, "an empty log holds no memory");
    CHECK(wv_log_peek(&log, &at, &source, &data) == 0, "an empty log has no bytes");
    add(&log, 1, 10, 100, ANY);
    add(&log, 2, 5, 100, ANY);
    add(&log, 2, 5, 100, ANY);
    add(&log, 1, 3, 100, ANY);
    CHECK(check(&log, 0, &gap) == 23 && gap == 0, "all bytes come back");
    CHECK(wv_log_peek(&log, &at, &source, &data) == 10 && source == 1, "first source");
    at = 12;
    CHECK(wv_log_peek(&log, &at, &source, &data) == 8 && source == 2 && at == 12,
          "a run goes to its end, from its middle");
    CHECK(log.count[1] == 13 && log.count[2] == 10, "bytes are counted by source");
    wv_log_fini(&log);
    CHECK(used == 0, "memory goes back");
    CHECK(check(&log, 0, &gap) == 0 && gap == 23, "a log without memory is one gap");
    add(&log, 1, 7, 100, ANY);
    CHECK(check(&log, 23, &gap) == 7 && gap == 0, "and goes on behind it");
    wv_log_fini(&log);
}

static void test_gap(void)
{
    struct wv_log log;
    size_t used = 0;
    uint64_t gap;

    wv_log_init(&log, 0, 0, &used, LIMIT);
    add(&log, 1, 65536 + 1048576, 50000, ANY);
    CHECK(check(&log, 0, &gap) == 65536 + 1048576 && gap == 0, "head and tail join");
    add(&log, 2, 3000001, 61440, ANY);
    CHECK(check(&log, 0, &gap) == 65536 + 1048576 && gap == 3000001,
          "the middle is forgotten, the ends are kept");
    CHECK(check(&log, 100000, &gap) == 1048576 && gap == log.total - 1048576 - 100000,
          "reading from inside the gap starts behind it");
    CHECK(used <= 65536 + 1048576 + 8192, "memory is what was agreed");
    wv_log_fini(&log);

    wv_log_init(&log, 4096, 4096, &used, LIMIT);
    for (int i = 0; i < 1000; i++)
        add(&log, (uint8_t)(1 + i % 2), 1 + (size_t)i % 700, 700, ANY);
    CHECK(check(&log, 0, &gap) == 8192 && gap == log.total - 8192,
          "small ones, many turns");
    wv_log_fini(&log);
    CHECK(used == 0, "memory goes back");
}

static void test_keep(void)
{
    struct wv_log log;
    size_t used = 0, n;
    uint64_t gap;

    wv_log_init(&log, 4096, 65536, &used, LIMIT);
    n = add(&log, 1, 1000000, 10000, 0);
    CHECK(n == 4096 + 65536, "what must be kept stops the writer");
    CHECK(check(&log, 0, &gap) == n && gap == 0, "and nothing is lost");
    n = add(&log, 1, 1000000, 10000, 4096 + 1000);
    CHECK(n == 1000, "1000 bytes read are 1000 bytes of room");
    CHECK(add(&log, 1, 1000000, 10000, 4096) == 0, "a gap cannot be kept any more");
    CHECK(add(&log, 1, 200000, 10000, ANY) == 200000, "without a keeper it goes on");
    wv_log_fini(&log);
}

static void test_runs(void)
{
    struct wv_log log;
    size_t used = 0;
    uint64_t gap, seen;

    wv_log_init(&log, 65536, 65536, &used, LIMIT);
    for (int i = 0; i < 400000; i++)
        add(&log, (uint8_t)(1 + i % 2), 1, 1, ANY);
    seen = check(&log, 0, &gap);
    CHECK(seen > 2000 && seen + gap == 400000,
          "single bytes of two sources are kept a while");
    CHECK(used <= 2 * (65536 + 65536 / 4 + 4096), "and cost a bounded amount");
    for (int i = 0; i < 400000; i++)
        if (add(&log, (uint8_t)(1 + i % 2), 1, 1, 399990) == 0)
            break;
    CHECK(check(&log, 399990, &gap) > 0 && gap == 0,
          "runs do not push out what is kept");
    wv_log_fini(&log);
    CHECK(used == 0, "memory goes back");
}

static void test_limit(void)
{
    static struct wv_log logs[64];
    size_t used = 0;
    uint64_t gap;
    int good = 1;

    for (int i = 0; i < 64; i++)
        wv_log_init(&logs[i], 0, 0, &used, LIMIT);
    for (int i = 0; i < 64; i++)
        good &= add(&logs[i], 1, 3000000, 61440, ANY) == 3000000;
    CHECK(good, "above the session's limit every log still takes bytes");
    CHECK(used <= LIMIT + 64 * 8192, "the limit holds, but for a page or two each");
    CHECK(check(&logs[63], 2999999, &gap) == 1 && gap == 0, "also in the last one");
    for (int i = 0; i < 64; i++)
        wv_log_fini(&logs[i]);
    CHECK(used == 0, "memory goes back");
}

int main(void)
{
    test_small();
    test_gap();
    test_keep();
    test_runs();
    test_limit();
    TEST_END();
}
