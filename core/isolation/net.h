/* net.h - a session's network namespace: loopback, and nothing else
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_NET_H
#define WV_ISOLATION_NET_H

#include <stdint.h>

#include "base/err.h"

/* In a fresh network namespace whose owner we are root of: loopback comes up, ports
 * below 1024 are like any other (root of a sandbox does not own the namespace, so it
 * could not bind them), and groups first..last may ping. */
int wv_net_prepare(uint32_t first, uint32_t last, struct wv_err *err);

#endif
