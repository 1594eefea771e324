/* files.h - file requests of the session protocol
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_FILES_H
#define WV_GUEST_FILES_H

#include "guest/conn.h"

/* Handle one event of a file stream: OPEN_FILE ... REMOVE, PUT_DATA, PUT_END, CANCEL.
 */
void wv_files_handle(struct wv_conn *conn, struct wv_event *event);

/* There is room to send: go on with answers that wait for it. */
void wv_files_more(struct wv_conn *conn);

/* The connection is going: drop unfinished writes and workers of its streams. */
void wv_files_drop(struct wv_conn *conn);

#endif
