/* request.h - one file request: who asks, about what, and its answers
 *
 * Answers are encoded at once and wait in a buffer, until the connection has room or,
 * in a file worker, until there are enough of them to be sent to the agent.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_REQUEST_H
#define WV_GUEST_REQUEST_H

#include <sys/stat.h>

#include "base/buf.h"
#include "guest/path.h"
#include "guest/user.h"

#define WV_BATCH_MAX 65536u /* answers that cross from a worker at once */
#define WV_ANSWER_HEAD 5u   /* before each: u32 length, u8 type */

struct wv_request {
    const char *op;      /* what errors call it */
    struct wv_user user; /* acts with the rights of */
    struct wv_path path;
    struct wv_buf answers;
    int fd;   /* goes with FILE, owned; or -1 */
    int sock; /* in a worker: to the agent; else -1 */
};

void wv_request_init(struct wv_request *req, const char *op);
void wv_request_fini(struct wv_request *req);

/* Add an answer. Negative: there is no room, or nobody to take it. */
int wv_request_send(struct wv_request *req, uint8_t type, const void *msg);

/* In a worker: send what is there. */
int wv_request_flush(struct wv_request *req);

/* Answer ERROR, from errno or with a text; both return -1. */
int wv_request_errno(struct wv_request *req, const char *field);
int wv_request_fail(struct wv_request *req, int code, const char *field,
                    const char *reason, const char *text);
int wv_request_err(struct wv_request *req, const struct wv_err *err);

/* The file is not the one that the caller had seen: ERROR with its present version. */
int wv_request_conflict(struct wv_request *req, const char *version);

/* Answer with what is known of an entry. path as text; target of a link, or "". */
int wv_request_stat(struct wv_request *req, uint8_t type, const struct stat *st,
                    const char *path, struct wv_str target);

/* An opaque name for what a file holds. Two files, or one file before and after a
 * change of content, attributes or name, have different ones. (As far as the kernel's
 * clock goes: of two changes of one file within a tick, to the same size, the first can
 * stay unseen.) */
#define WV_VERSION_ROOM 33
void wv_version_of(const struct stat *st, char out[WV_VERSION_ROOM]);

#endif
