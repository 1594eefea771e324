/* conn.h - one connection to the agent: a chan over a socket
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_CONN_H
#define WV_GUEST_CONN_H

#include "channel/chan.h"

struct wv_agent;

struct wv_conn {
    struct wv_conn *next;
    struct wv_agent *agent;
    int sock;
    int broken;          /* to be closed at the end of the turn */
    struct wv_chan chan;
};

/* Send a message on a stream; a failure marks the connection broken. WV_EAGAIN (queue full
 * or no credit) is returned and is not a failure. */
int wv_conn_send(struct wv_conn *conn, uint32_t stream, uint8_t type, const void *msg,
                 int fd);

/* ERROR on a stream, from err (or from code, errno and text). */
void wv_conn_error(struct wv_conn *conn, uint32_t stream, const struct wv_err *err,
                   const char *reason);

#endif
