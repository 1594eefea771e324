/* client.h - one control connection: what a host asks of the supervisor
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_CLIENT_H
#define WV_SUPERVISOR_CLIENT_H

#include "channel/chan.h"
#include "supervisor/supervisor.h"
#include "wire/msg.h"

#define WV_CLIENT_JOBS 64

/* A request that the janitor answers. */
struct wv_client_job {
    uint64_t ticket; /* 0: free */
    uint32_t stream;
    uint8_t type; /* of the request */
};

struct wv_client {
    struct wv_client *next;
    struct wv_supervisor *super;
    struct wv_watch sock, host;
    struct wv_client_job jobs[WV_CLIENT_JOBS];
    uint64_t listed;  /* SESSIONS: all up to this ticket were sent */
    uint32_t listing; /* ... on this stream; 0: no listing under way */
    uint8_t embedded; /* its end is the end of the supervisor */
    uint8_t dead;     /* to be freed when the turn is over */
    uint8_t writing;  /* waits for room in its socket */
    uint8_t more;     /* has read what it has not handled */
    struct wv_chan chan;
};

/* Serve the connection sock. embedded: its end is the end of the supervisor. */
int wv_client_new(struct wv_supervisor *super, int sock, int embedded,
                  struct wv_err *err);

/* The session that stream stands for. */
void wv_client_bind(struct wv_client *client, uint32_t stream,
                    struct wv_session *session);

/* Answer. A client that lets answers pile up is dropped. */
void wv_client_send(struct wv_client *client, uint32_t stream, uint8_t type,
                    const void *msg);
void wv_client_error(struct wv_client *client, uint32_t stream,
                     const struct wv_err *err);

/* --- client_ask.c ----------------------------------------------------------- */

/* Ask the janitor on behalf of stream; n bytes of the request's union. */
void wv_client_ask(struct wv_client *client, uint32_t stream, uint8_t type,
                   struct wv_role_request *req, size_t n);
void wv_client_ask_usage(struct wv_client *client, const struct wv_event *event);
void wv_client_ask_catalog(struct wv_client *client, const struct wv_event *event);

/* --- what the rest of the supervisor tells ----------------------------------- */

void wv_clients_node(struct wv_supervisor *super);
/* USED, TEMPLATES or DONE from the janitor; 0: the ticket is not a client's. */
int wv_clients_answer(struct wv_supervisor *super, const struct wv_role_request *in);
void wv_clients_janitor_died(struct wv_supervisor *super);

int wv_clients_go_on(struct wv_supervisor *super);

/* Send what can be sent; waits at most this long for it. */
void wv_clients_flush(struct wv_supervisor *super, int wait_ms);
void wv_clients_bury(struct wv_supervisor *super);

#endif
