/* stdio.h - pipes and terminals for a command
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_STDIO_H
#define WV_GUEST_STDIO_H

#include "guest/user.h"
#include "wire/msg.h"

/* Descriptors: ours to keep, theirs to pass on; -1 where there is none. With a
 * terminal, out and in are two descriptors of its master. */
struct wv_stdio {
    int in, out, err;
    int theirs[3];
};

/* Fill io, which holds -1 only; what was made before a failure is there to be dropped.
 */
int wv_stdio_make(struct wv_stdio *io, const struct wv_msg_START *start,
                  const struct wv_user *user, struct wv_err *err);
void wv_stdio_drop(struct wv_stdio *io);

#endif
