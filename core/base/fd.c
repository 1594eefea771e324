/* fd.c - descriptors
 *
 * SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void wv_fd_drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int wv_fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

int wv_fd_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

ssize_t wv_fd_send(int sock, const void *data, size_t len, const int *fds, size_t nfds,
                   struct wv_err *err)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * WV_FDS_MAX)];
    } control;
    struct iovec iov = {.iov_base = (void *)(size_t)data, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    if (nfds > WV_FDS_MAX)
        return wv_fail(err, WV_EINVALID, "send", "%zu descriptors in a message", nfds);
    if (nfds > 0) {
        struct cmsghdr *head;

        memset(&control, 0, sizeof control);
        msg.msg_control = control.space;
        msg.msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * nfds);
        head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * nfds);
    }
    do {
        sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return wv_fail_errno(err, "send", "sending %zu bytes", len);
    return sent;
}

/* Move the descriptors of one control message to fds; close what does not fit. */
static void take_rights(const struct cmsghdr *head, int *fds, size_t room, size_t *got)
{
    size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
        if (*got < room)
            fds[(*got)++] = fd;
        else
            close(fd);
    }
}

ssize_t wv_fd_recv(int sock, void *data, size_t len, int *fds, size_t *nfds,
                   struct wv_err *err)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * WV_FDS_MAX)];
    } control;
    struct iovec iov = {.iov_base = data, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    size_t room = *nfds, got = 0;
    ssize_t n;

    if (room > 0) {
        msg.msg_control = control.space;
        msg.msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * room);
    }
    *nfds = 0;
    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return wv_fail_errno(err, "receive", "receiving");
    for (struct cmsghdr *head = room > 0 ? CMSG_FIRSTHDR(&msg) : NULL; head != NULL;
         head = CMSG_NXTHDR(&msg, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            take_rights(head, fds, room, &got);
    if (room > 0 && (msg.msg_flags & MSG_CTRUNC) != 0) {
        while (got > 0)
            close(fds[--got]);
        return wv_fail(err, WV_ECAPACITY, "receive", "no room for a passed descriptor");
    }
    *nfds = got;
    return n;
}

int wv_fd_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}
