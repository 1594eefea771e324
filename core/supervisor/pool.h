/* pool.h - slots made ahead by the janitor, ready to be used once
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_POOL_H
#define WV_SUPERVISOR_POOL_H

#include <stddef.h>

#include "base/err.h"
#include "base/fd.h"
#include "supervisor/role.h"

#define WV_POOL_TARGET 2 /* idle slots to keep */
#define WV_POOL_MAX 8    /* idle and on their way */

struct wv_pooled {
    struct wv_slot slot;
    int fds[WV_FDS_MAX]; /* in the order of struct wv_slot */
    size_t nfds;
};

struct wv_pool {
    struct wv_pooled idle[WV_POOL_MAX];
    unsigned n, asked;
};

struct wv_supervisor;
struct wv_link_in;

/* Take an idle slot: 1, or 0 when one must be waited for, or negative when none will
 * come. */
int wv_pool_take(struct wv_supervisor *super, struct wv_pooled *pooled,
                 struct wv_err *err);

/* Give back what was taken and not used in any way. */
void wv_pool_return(struct wv_supervisor *super, struct wv_pooled *pooled);

/* Ask for as many as waiting opens and the target need, one at a time. */
void wv_pool_refill(struct wv_supervisor *super, unsigned waiting);

/* The janitor's answer. Negative: it could not, for the reason in err. */
int wv_pool_slotted(struct wv_supervisor *super, struct wv_link_in *in,
                    struct wv_err *err);

void wv_pooled_drop(struct wv_pooled *pooled);

#endif
