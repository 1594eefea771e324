/* clock.h - the two clocks: monotonic for waiting, boottime for lifetimes
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_BASE_CLOCK_H
#define WV_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t wv_clock_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* Microseconds that only go forward. */
static inline uint64_t wv_now_us(void)
{
    return wv_clock_us(CLOCK_MONOTONIC);
}

/* Milliseconds since boot, counting time asleep: what TTLs mean. */
static inline uint64_t wv_boot_ms(void)
{
    return wv_clock_us(CLOCK_BOOTTIME) / 1000u;
}

#endif
