/* test.h - the smallest harness: numbered "ok" lines, non-zero exit on failure
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SPEC_TEST_H
#define WV_SPEC_TEST_H

#include <stdio.h>

static int test_count, test_failed;

#define CHECK(cond, name)                                                              \
    do {                                                                               \
        int good_ = (cond) != 0;                                                       \
        printf("%sok %d - %s%s\n", good_ ? "" : "not ", ++test_count, name,            \
               good_ ? "" : " (" #cond ")");                                           \
        test_failed += !good_;                                                         \
    } while (0)

#define TEST_END()                                                                     \
    do {                                                                               \
        printf("1..%d\n", test_count);                                                 \
        return test_failed > 0;                                                        \
    } while (0)

#endif
