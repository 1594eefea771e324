/* stdio.c - pipes and terminals for a command
 *
 * SPDX-License-Identifier: MIT */
#include "guest/stdio.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

void wv_stdio_drop(struct wv_stdio *io)
{
    wv_fd_drop(&io->in);
    wv_fd_drop(&io->out);
    wv_fd_drop(&io->err);
    for (int i = 0; i < 3; i++)
        wv_fd_drop(&io->theirs[i]);
}

/* A pipe whose `ours` end does not block. The inode goes to the user, or ">
 * /dev/stdout" would be refused. */
static int make_pipe(int *ours, int *theirs, int writes, const struct wv_user *user)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *ours = ends[writes];
    *theirs = ends[!writes];
    if (user->uid != 0)
        (void)!fchown(*ours, user->uid, user->gid);
    return wv_fd_nonblock(*ours);
}

static void set_size(int terminal, uint32_t cols, uint32_t rows)
{
    struct winsize size = {
        .ws_col = (unsigned short)(cols > 0 ? cols : 80),
        .ws_row = (unsigned short)(rows > 0 ? rows : 24),
    };

    ioctl(terminal, TIOCSWINSZ, &size);
}

/* The other end of a terminal: by descriptor, so that nothing can be put in its way. */
static int open_slave(int master)
{
    char path[32];
    int n, unlock = 0, slave;

    if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
        return -1;
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave >= 0 || ioctl(master, TIOCGPTN, &n) < 0)
        return slave;
    snprintf(path, sizeof path, "/dev/pts/%d", n);
    return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int make_terminal(struct wv_stdio *io, const struct wv_msg_START *start,
                         const struct wv_user *user)
{
    struct termios mode;
    int slave;

    io->out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (io->out < 0)
        return -1;
    slave = io->theirs[1] = open_slave(io->out);
    /* Again, because one descriptor cannot be in the loop for reading and for writing
     * with two minds. */
    io->in = fcntl(io->out, F_DUPFD_CLOEXEC, 3);
    if (slave < 0 || io->in < 0)
        return -1;
    (void)!fchown(slave, user->uid, (gid_t)-1);
    (void)!fchmod(slave, 0620);
    if (tcgetattr(slave, &mode) == 0) {
        mode.c_iflag |= IUTF8;
        tcsetattr(slave, TCSANOW, &mode);
    }
    set_size(io->out, start->cols, start->rows);
    return 0;
}

int wv_stdio_make(struct wv_stdio *io, const struct wv_msg_START *start,
                  const struct wv_user *user, struct wv_err *err)
{
    int rc;

    if ((start->flags & WV_START_PTY) != 0) {
        if (make_terminal(io, start, user) < 0)
            return wv_fail_errno(err, "start", "making a terminal");
        return 0;
    }
    rc = make_pipe(&io->out, &io->theirs[1], 0, user);
    if (rc == 0 && (start->flags & WV_START_STDIN) != 0)
        rc = make_pipe(&io->in, &io->theirs[0], 1, user);
    if (rc == 0 && (start->flags & WV_START_MERGE) == 0)
        rc = make_pipe(&io->err, &io->theirs[2], 0, user);
    return rc < 0 ? wv_fail_errno(err, "start", "making pipes") : 0;
}
