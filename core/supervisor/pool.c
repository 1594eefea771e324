/* pool.c - slots made ahead by the janitor, ready to be used once
 *
 * A network and a user namespace, a lease and a handful of cgroups cost a millisecond;
 * made ahead, an open does not see it. They are not recycled: what one guest had in its
 * hands is no good for the next.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/pool.h"

#include "supervisor/link.h"
#include "supervisor/supervisor.h"

void wv_pooled_drop(struct wv_pooled *pooled)
{
    for (size_t i = 0; i < pooled->nfds; i++)
        wv_fd_drop(&pooled->fds[i]);
    pooled->nfds = 0;
}

int wv_pool_take(struct wv_supervisor *super, struct wv_pooled *pooled,
                 struct wv_err *err)
{
    struct wv_pool *pool = &super->pool;

    if (pool->n > 0) {
        *pooled = pool->idle[0];
        pool->n--;
        for (unsigned i = 0; i < pool->n; i++)
            pool->idle[i] = pool->idle[i + 1];
        return 1;
    }
    if (super->janitor_gone)
        return wv_fail(
            err, WV_EUNAVAILABLE, "open",
            "the janitor has ended and no prepared slot is left: sessions go on, "
            "but a new one needs a new supervisor");
    return 0;
}

void wv_pool_return(struct wv_supervisor *super, struct wv_pooled *pooled)
{
    struct wv_pool *pool = &super->pool;

    if (pool->n == WV_POOL_MAX) {
        struct wv_role_request req = {
            .head = {.type = WV_ROLE_RELEASE, .number = pooled->slot.number}
        };

        wv_pooled_drop(pooled);
        wv_ask_janitor(super, &req, 0, NULL);
        return;
    }
    pool->idle[pool->n++] = *pooled;
    pooled->nfds = 0;
}

void wv_pool_refill(struct wv_supervisor *super, unsigned waiting)
{
    struct wv_pool *pool = &super->pool;
    unsigned want = waiting + WV_POOL_TARGET;
    unsigned at_once = waiting > 0 ? waiting : 1;

    if (want > WV_POOL_MAX)
        want = WV_POOL_MAX;
    while (pool->n + pool->asked < want && pool->asked < at_once &&
           !super->janitor_gone) {
        struct wv_role_request req = {.head = {.type = WV_ROLE_SLOT}};

        if (wv_ask_janitor(super, &req, 0, NULL) < 0)
            return;
        pool->asked++;
    }
}

int wv_pool_slotted(struct wv_supervisor *super, struct wv_link_in *in,
                    struct wv_err *err)
{
    struct wv_pool *pool = &super->pool;
    struct wv_pooled *to = &pool->idle[pool->n];

    pool->asked -= pool->asked > 0;
    if (in->req.head.err.code < 0) {
        *err = in->req.head.err;
        return err->code;
    }
    if (pool->n == WV_POOL_MAX)
        return wv_fail(err, WV_EPROTOCOL, "pool", "a slot nobody asked for");
    to->slot = in->req.u.slot;
    to->nfds = in->nfds;
    for (size_t i = 0; i < in->nfds; i++)
        to->fds[i] = in->fds[i];
    in->nfds = 0;
    pool->n++;
    return 0;
}
