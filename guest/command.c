/* command.c - from an order to a running program
 *
 * The child is a vfork: it shares our memory until it has become the program, so its
 * error is simply there, and no page table is copied. It therefore makes system calls
 * only, and makes them raw where a libc would keep state about them (the ids). The
 * memory is not dumpable, so that a user whose ids the child has taken cannot look into
 * it.
 *
 * SPDX-License-Identifier: MIT */
#include "guest/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/msg.h"

#define STACK 65536u
#define PATH_ROOM 4096u
#define PATH_USUAL "/usr/local/bin:/usr/bin:/bin"

static int fail(struct wv_command *c, const char *field)
{
    c->sys = errno;
    c->field = field;
    return -1;
}

static int take_stdio(struct wv_command *c)
{
    for (int i = 0; i < 3; i++)
        if (c->fds[i] >= 0 && dup2(c->fds[i], i) < 0)
            return fail(c, "stdio");
    if ((c->order->flags & WV_START_PTY) != 0 && ioctl(0, TIOCSCTTY, 0) < 0)
        return fail(c, "pty");
    return 0;
}

static int take_limits(struct wv_command *c)
{
    const struct wv_order *o = c->order;

    umask((o->flags & WV_START_UMASK) != 0 ? (mode_t)o->umask & 0777 : 022);
    /* Always: our own may be better, so that a kill gets through to a busy tree. */
    if (setpriority(PRIO_PROCESS, 0, o->nice) < 0 && o->nice != 0)
        return fail(c, "nice");
    if (o->cpu_ms > 0) {
        /* A backstop behind the parent's own count, which covers the whole tree. */
        rlim_t seconds = (rlim_t)(o->cpu_ms / 1000) + 2;
        struct rlimit limit = {.rlim_cur = seconds, .rlim_max = seconds + 1}, now;

        if (getrlimit(RLIMIT_CPU, &now) == 0 && now.rlim_max < limit.rlim_max)
            limit.rlim_max = now.rlim_max;
        if (limit.rlim_cur > limit.rlim_max)
            limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_CPU, &limit);
    }
    return 0;
}

static int take_ids(struct wv_command *c)
{
    const struct wv_order *o = c->order;

    /* Refused where one id is all there is: then there are no groups to keep either. */
    if (syscall(SYS_setgroups, (size_t)o->ngroups, o->groups) < 0 && errno != EPERM)
        return fail(c, "user");
    if (syscall(SYS_setresgid, o->gid, o->gid, o->gid) < 0 ||
        syscall(SYS_setresuid, o->uid, o->uid, o->uid) < 0)
        return fail(c, "user");
    return 0;
}

/* ENOENT of a file that exists is about its interpreter. */
static void try(struct wv_command *c, const char *path)
{
    c->sys = 0; /* seen by the parent once this succeeds */
    execve(path, c->argv, c->env);
    fail(c, "cmd");
    if (c->sys == ENOENT && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0)
        c->field = "interpreter";
}

static int goes_on(const struct wv_command *c)
{
    return (c->sys == ENOENT && strcmp(c->field, "cmd") == 0) || c->sys == ENOTDIR ||
           c->sys == EACCES || c->sys == ENAMETOOLONG || c->sys == ELOOP;
}

static void search(struct wv_command *c)
{
    const char *name = c->argv[0], *at = c->path != NULL ? c->path : PATH_USUAL;
    size_t len = strlen(name);
    char path[PATH_ROOM];
    int denied = 0;

    if (strchr(name, '/') != NULL) {
        try(c, name);
        return;
    }
    for (;;) {
        const char *end = at + strcspn(at, ":");
        size_t n = (size_t)(end - at);

        if (n + len + 2 <= sizeof path) {
            memcpy(path, at, n);
            if (n > 0)
                path[n++] = '/';
            memcpy(path + n, name, len + 1);
            try(c, path);
            if (!goes_on(c))
                return;
            denied |= c->sys == EACCES;
        }
        if (*end == '\0')
            break;
        at = end + 1;
    }
    c->sys = denied ? EACCES : ENOENT;
    c->field = "cmd";
}

static int become(void *arg)
{
    struct wv_command *c = arg;
    sigset_t none;

    setsid();
    if (take_stdio(c) < 0 || take_limits(c) < 0 || take_ids(c) < 0)
        _exit(127);
    if (chdir(c->cwd) < 0) { /* as the user */
        fail(c, "cwd");
        _exit(127);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    search(c);
    _exit(127);
}

pid_t wv_command_start(struct wv_command *c)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    pid_t pid;

    c->sys = 0;
    c->field = "";
    if (stack == MAP_FAILED)
        return fail(c, "memory");
    pid = clone(become, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    if (pid < 0)
        fail(c, "pids");
    prctl(PR_SET_DUMPABLE, 0); /* the child's change of ids may have changed it */
    munmap(stack, STACK);
    if (pid > 0 && c->sys != 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        pid = -1;
    }
    return pid;
}
