/* test_keep.c - kept output against a model, and how much memory it takes
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "client/keep.h"
#include "test.h"
#include "wire/msg.h"

#define MOST 4000000u

static uint8_t model[2][MOST];

/* What must be left of n bytes of a stream. */
static int same(struct wv_keep *keep, struct wv_keep_stream *stream, const uint8_t *all,
                size_t n)
{
    size_t part = keep->cap / 8;

    wv_keep_join(keep, stream);
    if (!keep->cut || n <= 2 * part)
        return stream->len == n && stream->missing == 0 &&
               (n == 0 || memcmp(stream->data, all, n) == 0);
    return stream->len == 2 * part && stream->missing == n - 2 * part &&
           memcmp(stream->data, all, part) == 0 &&
           memcmp(stream->data + part, all + n - part, part) == 0;
}

static int run(size_t cap, size_t total, size_t chunk_max, unsigned share)
{
    static uint8_t chunk[300000];
    size_t n[2] = {0, 0}, sum = 0;
    struct wv_keep keep;
    int good = 1;

    wv_keep_init(&keep, cap);
    while (sum < total) {
        size_t len = 1 + (size_t)rand() % chunk_max;
        int err = (unsigned)rand() % 100 < share;

        if (len > total - sum)
            len = total - sum;
        for (size_t i = 0; i < len; i++)
            chunk[i] = (uint8_t)rand();
        memcpy(model[err] + n[err], chunk, len);
        n[err] += len;
        sum += len;
        wv_keep_add(&keep, err ? WV_SOURCE_STDERR : WV_SOURCE_STDOUT, chunk, len);
        good &= keep.out.room + keep.err.room <= 2 * cap + 262144;
    }
    good &= keep.total == sum && keep.cut == (sum > cap);
    good &= same(&keep, &keep.out, model[0], n[0]);
    good &= same(&keep, &keep.err, model[1], n[1]);
    if (keep.cut && cap / 4 >= 131072)
        good &= keep.out.room <= cap / 4 && keep.err.room <= cap / 4;
    wv_keep_fini(&keep);
    return good;
}

int main(void)
{
    struct wv_keep keep;

    srand(7);
    CHECK(run(1000, 1000, 10, 50), "exactly the cap is whole");
    CHECK(run(1000, 1001, 10, 50), "one more is cut");
    CHECK(run(1000, 5000, 10, 50), "both streams cut");
    CHECK(run(1000, 5000, 10, 2), "a small stream stays whole");
    CHECK(run(1000, 5000, 10, 0), "one stream alone");
    CHECK(run(1000, 50000, 3000, 50), "chunks larger than the cap");
    CHECK(run(1003, 50000, 300, 50), "a cap that 8 does not divide");
    CHECK(run(1 << 20, 1 << 20, 65536, 30), "large and whole");
    CHECK(run(1 << 20, 3500000, 65536, 30), "large and cut");
    CHECK(run(1 << 20, 3500000, 300000, 1), "large and cut by large chunks");
    CHECK(run(300000, 3500000, 65536, 50), "shrunk below a mapping");
    CHECK(run(MOST, MOST, 300000, 50), "larger");

    wv_keep_init(&keep, 0);
    wv_keep_add(&keep, WV_SOURCE_PTY, "hello", 5);
    CHECK(keep.out.len == 0 && keep.out.missing == 5 && keep.total == 5,
          "a cap of nothing");
    wv_keep_fini(&keep);
    wv_keep_init(&keep, 100);
    wv_keep_output(&keep, WV_SOURCE_PTY, 0, "hello", 5);
    wv_keep_output(&keep, WV_SOURCE_PTY, 15, "again", 5);
    CHECK(keep.out.len == 10 && keep.gap == 10 && keep.offset == 20,
          "a gap is counted");
    wv_keep_fini(&keep);
    TEST_END();
}
