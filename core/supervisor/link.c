/* link.c - the supervisor's end of a socket to another role: never blocks, loses
 * nothing
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct wv_link_item {
    struct wv_link_item *next;
    size_t len, nfds;
    int fds[WV_FDS_MAX];
    unsigned char data[];
};

static void close_all(const int *fds, size_t nfds)
{
    for (size_t i = 0; i < nfds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int wv_link_pair(struct wv_link *link, int *theirs, struct wv_err *err)
{
    int pair[2];

    *link = (struct wv_link){.sock = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return wv_fail_errno(err, "role", "a socket pair");
    link->sock = pair[0];
    *theirs = pair[1];
    if (wv_fd_nonblock(link->sock) < 0) {
        wv_fail_errno(err, "role", "a socket pair");
        wv_fd_drop(&link->sock);
        wv_fd_drop(theirs);
        return WV_ESYSTEM;
    }
    return 0;
}

void wv_link_fini(struct wv_link *link)
{
    wv_fd_drop(&link->sock);
    while (link->first != NULL) {
        struct wv_link_item *item = link->first;

        link->first = item->next;
        close_all(item->fds, item->nfds);
        free(item);
    }
    link->last = NULL;
}

/* Full, or as many descriptors under way as a process may have: later. */
static int must_wait(long rc, const struct wv_err *err)
{
    return rc == WV_EAGAIN ||
           (rc < 0 && (err->sys == ETOOMANYREFS || err->sys == ENOBUFS));
}

static int enqueue(struct wv_link *link, const void *data, size_t len, const int *fds,
                   size_t nfds, struct wv_err *err)
{
    struct wv_link_item *item = malloc(sizeof *item + len);

    if (item == NULL) {
        close_all(fds, nfds);
        return wv_fail(err, WV_ECAPACITY, "role", "no memory for a request");
    }
    *item = (struct wv_link_item){.len = len, .nfds = nfds};
    memcpy(item->data, data, len);
    memcpy(item->fds, fds, nfds * sizeof *fds);
    if (link->first == NULL)
        link->first = item;
    else
        link->last->next = item;
    link->last = item;
    return 0;
}

int wv_link_send(struct wv_link *link, const struct wv_role_request *req, size_t len,
                 const int *fds, size_t nfds, struct wv_err *err)
{
    struct wv_err why = {0};
    ssize_t rc = WV_EAGAIN;

    if (link->sock < 0) {
        close_all(fds, nfds);
        return wv_fail(err, WV_EUNAVAILABLE, "role", "the role has ended");
    }
    if (link->first == NULL)
        rc = wv_fd_send(link->sock, req, len, fds, nfds, &why);
    if (must_wait(rc, &why))
        return enqueue(link, req, len, fds, nfds, err);
    close_all(fds, nfds);
    if (rc < 0 && err != NULL)
        *err = why;
    return rc < 0 ? (int)rc : 0;
}

int wv_link_flush(struct wv_link *link)
{
    while (link->first != NULL && link->sock >= 0) {
        struct wv_link_item *item = link->first;
        struct wv_err why = {0};
        ssize_t rc =
            wv_fd_send(link->sock, item->data, item->len, item->fds, item->nfds, &why);

        if (must_wait(rc, &why))
            return 0;
        link->first = item->next;
        close_all(item->fds, item->nfds);
        free(item);
    }
    return 1;
}

int wv_link_recv(struct wv_link *link, struct wv_link_in *in, struct wv_err *err)
{
    ssize_t n;

    in->nfds = WV_FDS_MAX;
    n = wv_fd_recv(link->sock, &in->req, sizeof in->req, in->fds, &in->nfds, err);
    if (n == WV_EAGAIN)
        return 0;
    if (n < (ssize_t)sizeof in->req.head) {
        wv_link_in_drop(in);
        return n < 0 ? (int)n : wv_fail(err, WV_ELOST, "role", "the role has ended");
    }
    memset((char *)&in->req + n, 0, sizeof in->req - (size_t)n);
    return 1;
}

void wv_link_in_drop(struct wv_link_in *in)
{
    close_all(in->fds, in->nfds);
    in->nfds = 0;
}
