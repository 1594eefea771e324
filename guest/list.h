/* list.h - what is in a directory, and below it
 *
 * Entries come in the byte order of their paths, so the last path of a page is where
 * the next one goes on, whatever has come and gone since. Links are shown and never
 * followed. A directory that the user may not read is shown and not entered; so is one
 * whose entries would have paths that are too long to be named.
 *
 * Memory is bounded whatever the directory holds: the smallest names are taken, so many
 * at a time, and a larger directory is read again for the next ones.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_LIST_H
#define WV_GUEST_LIST_H

#include "guest/glob.h"
#include "guest/request.h"

#define WV_LIST_MAX 1000u

struct wv_list {
    struct wv_glob glob;
    struct wv_str after; /* a cursor of an earlier page */
    uint32_t depth, limit;
};

/* Answer ENTRYs and END, or ERROR. budget: how many names may be read; when that is not
 * enough it returns 1 and has answered nothing that counts (0: no bound). */
int wv_list(struct wv_request *req, const struct wv_list *list, unsigned budget);

#endif
