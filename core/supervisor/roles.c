/* roles.c - starting the other roles, before the first byte of a client is read
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/roles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolation/user.h"
#include "supervisor/janitor.h"
#include "supervisor/launcher.h"

#define NEEDED                                                                         \
    (1u << CAP_SYS_ADMIN | 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_NET_ADMIN | \
     1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_KILL)

/* Root of a container without rights, or with few ids, is an ordinary user here. */
static int is_root(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct have[2] = {{0}};

    return geteuid() == 0 && syscall(SYS_capget, &head, have) == 0 &&
           (have[0].effective & NEEDED) == NEEDED && wv_user_has_ranges();
}

static pid_t clone_role(uint64_t flags, int *pidfd)
{
    struct clone_args args = {
        .flags = flags | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .exit_signal = SIGCHLD,
    };

    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static void rename_role(char *name, size_t room, const char *role)
{
    if (strlen(role) >= room)
        return;
    memset(name, 0, room);
    memcpy(name, role, strlen(role));
}

/* Everything above stderr but sock. */
static void close_others(int sock)
{
    if (sock > 3)
        syscall(SYS_close_range, 3, sock - 1, 0);
    syscall(SYS_close_range, sock + 1, ~0u, 0);
}

static int start_launcher(struct wv_roles *roles, char *name, size_t room, int *user,
                          struct wv_err *err)
{
    uint64_t flags = CLONE_NEWPID | (roles->root ? 0 : CLONE_NEWUSER | CLONE_NEWNS);
    WV_AUTO(wv_fd_drop) int theirs = -1;
    struct wv_subids subids;
    char path[64];
    pid_t pid;
    int rc;

    if ((rc = wv_link_pair(&roles->launcher, &theirs, err)) < 0)
        return rc;
    pid = clone_role(flags, &roles->launcher_pid);
    if (pid == 0) {
        rename_role(name, room, "wovyr-launch");
        close_others(theirs);
        _exit(wv_launcher_main(theirs, !roles->root));
    }
    if (pid < 0)
        return wv_fail_errno(err, "launcher", "cloning with namespaces");
    if (!roles->root) {
        wv_user_subids(geteuid(), &subids);
        if ((rc = wv_user_map_own(pid, &subids, err)) < 0)
            return rc;
        roles->ids = (uint32_t)rc;
        snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
        *user = open(path, O_RDONLY | O_CLOEXEC);
        if (*user < 0)
            return wv_fail_errno(err, "launcher", "its user namespace");
    }
    rc = (int)wv_fd_send(roles->launcher.sock, "", 1, NULL, 0, err);
    return rc < 0 ? rc : 0;
}

static int start_janitor(struct wv_roles *roles, char *name, size_t room, int user,
                         struct wv_err *err)
{
    struct wv_janitor_start start = {
        .launcher = roles->launcher_pid,
        .user = user,
        .ids = roles->ids,
        .owner = &roles->owner,
    };
    WV_AUTO(wv_fd_drop) int theirs = -1;
    WV_AUTO(wv_fd_drop) int pidfd = -1;
    pid_t pid;
    int rc;

    if ((rc = wv_link_pair(&roles->janitor, &theirs, err)) < 0)
        return rc;
    pid = clone_role(0, &pidfd);
    if (pid == 0) {
        rename_role(name, room, "wovyr-janitor");
        start.sock = theirs;
        wv_fd_drop(&roles->janitor.sock);
        wv_fd_drop(&roles->launcher.sock);
        close(3); /* the client's connection */
        _exit(wv_janitor_main(&start));
    }
    return pid < 0 ? wv_fail_errno(err, "janitor", "forking") : 0;
}

void wv_roles_start(struct wv_roles *roles, char *name, size_t room)
{
    WV_AUTO(wv_fd_drop) int user = -1;
    int rc;

    *roles = (struct wv_roles){
        .launcher = {.sock = -1}, .janitor = {.sock = -1}, .launcher_pid = -1};
    roles->root = is_root();
    rc = wv_owner_init(&roles->owner, roles->root, &roles->err);
    if (rc == 0)
        rc = start_launcher(roles, name, room, &user, &roles->err);
    if (rc == 0)
        start_janitor(roles, name, room, user, &roles->err);
}
