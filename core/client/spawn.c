/* spawn.c - start the supervisor from a host that must not notice
 *
 * Theory of operation. Three processes share the host's memory for a moment:
 *
 *     host thread ──clone(VM|VFORK, no exit signal)──► intermediate
 *                                                        └─clone(VM|VFORK)─► supervisor
 *
 * VFORK stops each of them until the one below has gone to exec or exit, so nothing is
 * copied (a fork of a large host costs tens of milliseconds) and an error can be handed
 * up in plain memory. The intermediate never execs: only such a child stays silent,
 * because exec gives the exit signal SIGCHLD back. It is waited for with __WCLONE,
 * which no ordinary wait of the host sees, and when it has ended the supervisor is
 * init's child, not the host's. (A host that is a subreaper or PID 1 is itself that
 * init.)
 *
 * Between clone and exec the two run with every signal blocked, on a stack of their
 * own, and make raw system calls only: a handler, an atfork hook or a cancellation of
 * the host must not run in them, since what they write is the host's memory.
 *
 * SPDX-License-Identifier: MIT */
#include "client/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define STACK 32768 /* of each of the two */
#define ABOVE 16    /* descriptors are first moved up here, out of the way */
#define SIGNALS 64
#define SIGSET_BYTES 8

#define RAW __attribute__((no_sanitize("address")))

struct start {
    const struct wv_image *image;
    char *stack;
    int sock, null;
    int keep_stderr;
    const char *failed; /* what could not be done, with sys; NULL: it runs */
    int sys;
};

/* Put everything that a process inherits into a known state. Returns what failed. */
RAW static const char *become_clean(const struct start *start, long *exec_fd)
{
    char defaults[64] = {0}; /* a kernel sigaction: SIG_DFL, no flags */
    uint64_t none = 0;
    long sock, null;

    for (int sig = 1; sig <= SIGNALS; sig++)
        syscall(SYS_rt_sigaction, sig, defaults, NULL, SIGSET_BYTES);
    if (syscall(SYS_setsid) < 0)
        return "setsid";
    if (syscall(SYS_chdir, "/") < 0)
        return "chdir";
    syscall(SYS_umask, 077);

    sock = syscall(SYS_fcntl, start->sock, F_DUPFD_CLOEXEC, ABOVE);
    null = syscall(SYS_fcntl, start->null, F_DUPFD_CLOEXEC, ABOVE);
    *exec_fd = start->image->fd < 0
                   ? -1
                   : syscall(SYS_fcntl, start->image->fd, F_DUPFD_CLOEXEC, ABOVE);
    if (sock < 0 || null < 0 || (start->image->fd >= 0 && *exec_fd < 0))
        return "placing descriptors";
    for (int fd = 0; fd <= 2; fd++)
        if ((fd < 2 || !start->keep_stderr) && syscall(SYS_dup3, null, fd, 0) < 0)
            return "placing descriptors";
    if (syscall(SYS_dup3, sock, 3, 0) < 0)
        return "placing descriptors";
    if (*exec_fd >= 0) {
        if (syscall(SYS_dup3, *exec_fd, 4, O_CLOEXEC) < 0)
            return "placing descriptors";
        *exec_fd = 4;
    }
    if (syscall(SYS_close_range, *exec_fd >= 0 ? 5u : 4u, ~0u, 0u) < 0)
        return "close_range";

    /* Last: from here on a signal may end us, but no handler is left that could run. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, SIGSET_BYTES);
    return NULL;
}

RAW static int supervisor(void *arg)
{
    struct start *start = arg;
    const char *argv[] = {"wovyr-supervisor", NULL};
    const char *envp[] = {start->keep_stderr ? "WOVYR_DEBUG=1" : NULL, NULL};
    long exec_fd = -1;
    const char *failed = become_clean(start, &exec_fd);

    if (failed == NULL) {
        failed = "exec";
        if (exec_fd >= 0)
            syscall(SYS_execveat, (int)exec_fd, "", argv, envp, AT_EMPTY_PATH);
        else
            syscall(SYS_execve, start->image->path, argv, envp);
    }
    start->sys = errno;
    start->failed = failed;
    return 127;
}

RAW static int intermediate(void *arg)
{
    struct start *start = arg;
    int pid;

    start->failed = NULL;
    pid = clone(supervisor, start->stack + 2 * STACK, CLONE_VM | CLONE_VFORK, start);
    if (pid < 0) {
        start->sys = errno;
        start->failed = "clone";
    } else if (start->failed != NULL) {
        syscall(SYS_wait4, pid, NULL, __WALL, NULL);
    }
    return 0;
}

/* Run the two; the result is in start. */
static void run(struct start *start)
{
    uint64_t all = ~0ull, before = 0;
    int pid;

    start->failed = "clone"; /* until the intermediate says otherwise */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGSET_BYTES);
    pid = clone(intermediate, start->stack + STACK,
                CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS, start);
    start->sys = pid < 0 ? errno : start->sys;
    /* ECHILD would mean that the host waits for clones itself: then it is reaped too.
     */
    if (pid >= 0)
        while (syscall(SYS_wait4, pid, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
            ;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGSET_BYTES);
}

int wv_spawn(const struct wv_image *image, int *sock, struct wv_err *err)
{
    int keep_stderr = secure_getenv("WOVYR_DEBUG") != NULL && fcntl(2, F_GETFD) >= 0;
    WV_AUTO(wv_fd_drop) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    WV_AUTO(wv_fd_drop) int ours = -1;
    WV_AUTO(wv_fd_drop) int theirs = -1;
    struct start start = {.image = image, .null = null, .keep_stderr = keep_stderr};
    int pair[2];

    if (null < 0)
        return wv_fail_errno(err, "spawn", "opening /dev/null");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return wv_fail_errno(err, "spawn", "making a control socket");
    ours = pair[0];
    theirs = pair[1];
    if (wv_fd_nonblock(ours) < 0)
        return wv_fail_errno(err, "spawn", "making a control socket");
    start.sock = theirs;
    start.stack = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (start.stack == MAP_FAILED)
        return wv_fail_errno(err, "spawn", "allocating a stack");
    run(&start);
    munmap(start.stack, 2 * STACK);
    if (start.failed != NULL) {
        errno = start.sys;
        if (errno == EAGAIN)
            return wv_fail(err, WV_ECAPACITY, "spawn", "%s: no more processes allowed",
                           start.failed);
        if (image->fd < 0)
            return wv_fail_errno(err, "spawn", "%s of %s", start.failed, image->path);
        return wv_fail_errno(err, "spawn", "%s of the supervisor", start.failed);
    }
    *sock = wv_fd_take(&ours);
    return 0;
}
