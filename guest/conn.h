/* conn.h - one connection to the agent: a chan over a socket
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_CONN_H
#define WV_GUEST_CONN_H

#include "channel/chan.h"
#include "guest/agent.h"

struct wv_follower;
struct wv_listing;

struct wv_conn {
    struct wv_conn *next;
    struct wv_agent *agent;
    int sock;
    int broken; /* to be closed at the end of the turn */
    int more;   /* there may be messages that were read but not taken */
    struct wv_watch watch;
    struct wv_follower *followers; /* its streams that belong to a process */
    struct wv_listing *listings;   /* its PROCESSES streams that are not at their end */
    struct wv_chan chan;
};

/* A new connection; owns sock. */
int wv_conn_open(struct wv_agent *agent, int sock, struct wv_err *err);

/* The end of a turn: take what is left over, write, drop what broke. 1: there is more
 * to do without waiting. */
int wv_conn_turn(struct wv_agent *agent);

/* Send a message on a stream; a failure marks the connection broken. WV_EAGAIN (queue
 * full or no credit) is returned and is not a failure. */
int wv_conn_send(struct wv_conn *conn, uint32_t stream, uint8_t type, const void *msg,
                 int fd);

/* The same for a DATA message whose tail stays where it is until the call returns: it is
 * copied only if the socket does not take it. */
int wv_conn_send_from(struct wv_conn *conn, uint32_t stream, uint8_t type, const void *msg);

/* ERROR on a stream, from err (or from code, errno and text). */
void wv_conn_error(struct wv_conn *conn, uint32_t stream, const struct wv_err *err,
                   const char *reason);

#endif
