/* entry.h - requests about one entry: open, stat, mkdir, rename
 *
 * Each acts with the rights that the caller has assumed and answers by req, with an
 * error too; the results are for the flow of control only.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_ENTRY_H
#define WV_GUEST_ENTRY_H

#include "guest/request.h"

int wv_entry_open(struct wv_request *req); /* FILE with a descriptor for reading */
int wv_entry_stat(struct wv_request *req, int follow);
int wv_entry_mkdir(struct wv_request *req, const struct wv_msg_MKDIR *msg);

/* With guarded and a version, the entry must have it; with guarded and none, nothing
 * may be in the place where it goes. */
int wv_entry_rename(struct wv_request *req, const struct wv_msg_RENAME *msg);

#endif
