/* client.h - one control connection: what a host asks of the supervisor
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_CLIENT_H
#define WV_SUPERVISOR_CLIENT_H

#include "supervisor/supervisor.h"
#include "wire/msg.h"

/* Serve the connection sock. embedded: its end is the end of the supervisor. */
int wv_client_new(struct wv_supervisor *super, int sock, int embedded,
                  struct wv_err *err);

struct wv_supervisor *wv_client_supervisor(const struct wv_client *client);

/* The session that stream stands for. */
void wv_client_bind(struct wv_client *client, uint32_t stream,
                    struct wv_session *session);

/* Answer. A client that lets answers pile up is dropped. */
void wv_client_send(struct wv_client *client, uint32_t stream, uint8_t type,
                    const void *msg);
void wv_client_error(struct wv_client *client, uint32_t stream,
                     const struct wv_err *err);

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
