/* remove.h - removing files and trees
 *
 * A tree is removed by descriptors, never through a link and never into another mount,
 * however deep it is and whatever is moved meanwhile. It stops at the first entry that
 * cannot be removed; what was removed by then is gone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_REMOVE_H
#define WV_GUEST_REMOVE_H

#include "guest/request.h"

/* Remove the entry; 1: that is work for wv_remove_tree (a directory that is not empty,
 * a large file), and nothing was answered. The root, mounts and the workspace are
 * refused. */
int wv_remove_one(struct wv_request *req, const struct wv_msg_REMOVE *msg);

/* Remove all of it; answers OK or ERROR. */
void wv_remove_tree(struct wv_request *req, const void *unused);

#endif
