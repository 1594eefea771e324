/* put.h - a file being written
 *
 * Atomic: the bytes go to a file without a name in the target's directory, which takes
 * the target's place at the end; whoever reads sees the old file or the new one, and a
 * writer that dies leaves nothing. What was there gives its mode and, where the user
 * may, its owner and group (not its extended attributes); its other names (hard links)
 * keep the old content. A file that the user may not write is not replaced either,
 * though the directory would allow it.
 *
 * In place (not atomic, and always when appending): the bytes go into the file that is
 * there, which keeps its names and its open handles, and which a full disk or a cancel
 * leaves half written; nothing of the old content goes before the first byte has come.
 * A file that it made itself is removed again.
 *
 * Either way a symbolic link is written through: what it points to is the target, made
 * if it is missing. The directory of the target is found once and held; from then on
 * only its own entry is touched, never through a link, so that nothing can be put in
 * the way.
 *
 * A version is compared at the start and again directly before the file takes its
 * place. Two writers of ours cannot both pass that; a program that writes within these
 * last microseconds is not seen. That the target is absent is checked by the kernel
 * itself.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_PUT_H
#define WV_GUEST_PUT_H

#include "guest/request.h"
#include "guest/resolve.h"

struct wv_put {
    struct wv_place place;
    uint32_t flags, mode;
    uid_t owner; /* (uid_t)-1: not asked for */
    gid_t group;
    int fd;                  /* what is written to */
    uint8_t emptied;         /* in place: the old content is gone */
    uint8_t created;         /* in place: the file was not there */
    char temp[WV_TEMP_ROOM]; /* the name of fd in the place's directory, or "" */
    char version[64 + 1];    /* expected, with WV_PUT_IF_VERSION */
};

/* The user's rights are assumed by the caller, but for writing. 0, or -1 when req was
 * answered with an error; then abort. */
int wv_put_open(struct wv_put *put, struct wv_request *req,
                const struct wv_msg_PUT *msg);
int wv_put_write(struct wv_put *put, struct wv_request *req, struct wv_str data);

/* Let it appear, and answer STATED or ERROR. It is over then, as it is after abort,
 * which leaves nothing behind. */
void wv_put_commit(struct wv_put *put, struct wv_request *req);
void wv_put_abort(struct wv_put *put, const struct wv_request *req);

/* Would fsync have to wait for a disk? */
int wv_put_must_sync(const struct wv_put *put);

#endif
