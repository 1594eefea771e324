/* fuzz_msg.c - any bytes as any message: decoding is exact, or refused
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    union wv_msg msg;
    uint8_t type, *again;
    long size;

    if (len < 1 || len > WV_MESSAGE_MAX)
        return 0;
    type = data[0] & 0x7f;
    if (wv_msg_get(type, data + 1, len - 1, &msg, NULL) < 0)
        return 0;
    size = wv_msg_size(type, &msg, NULL);
    if (size != (long)len - 1)
        abort();
    again = malloc((size_t)size + 1);
    wv_msg_put(type, &msg, again);
    if (memcmp(again, data + 1, (size_t)size) != 0)
        abort();
    free(again);
    return 0;
}
