/* mount.c - the file-descriptor mount API
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* MS_BIND, MS_PRIVATE, MNT_DETACH: <sys/mount.h> quarrels with <linux/mount.h>. */
#define MOUNT_BIND 4096ul
#define MOUNT_PRIVATE (1u << 18)
#define UMOUNT_DETACH 2

static int set_option(int context, const struct wv_mount_option *option)
{
    unsigned cmd = option->value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

    return (int)syscall(SYS_fsconfig, context, cmd, option->key, option->value, 0);
}

int wv_mount_new(const char *type, const struct wv_mount_option *options, size_t n,
                 uint64_t attr, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
    int mount;

    if (context < 0)
        return wv_fail_errno(err, "mount", "file system %s", type);
    for (size_t i = 0; i < n; i++)
        if (options[i].key != NULL && set_option(context, &options[i]) < 0)
            return wv_fail_errno(err, "mount", "%s: option %s=%s", type, options[i].key,
                                 options[i].value != NULL ? options[i].value : "");
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return wv_fail_errno(err, "mount", "making a %s", type);
    mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attr);
    if (mount < 0)
        return wv_fail_errno(err, "mount", "mounting a %s", type);
    return mount;
}

int wv_mount_clone(int at, const char *path, int deep, struct wv_err *err)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
                     AT_SYMLINK_NOFOLLOW | (deep ? AT_RECURSIVE : 0u);
    int mount = (int)syscall(SYS_open_tree, at, path, flags);

    if (mount < 0)
        return wv_fail_errno(err, "mount", "cloning /%s", path + (*path == '/'));
    return mount;
}

int wv_mount_restrict(int mount, uint64_t attr, int user, int deep, struct wv_err *err)
{
    struct mount_attr set = {.attr_set = attr};

    if (user >= 0) {
        set.attr_set |= MOUNT_ATTR_IDMAP;
        set.userns_fd = (uint64_t)user;
    }
    if (syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | (deep ? AT_RECURSIVE : 0),
                &set, sizeof set) < 0)
        return wv_fail_errno(err, "mount",
                             user >= 0 ? "mapping the ids of a mount"
                                       : "restricting a mount");
    return 0;
}

int wv_mount_put(int mount, int at, const char *path, struct wv_err *err)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;

    if (syscall(SYS_move_mount, mount, "", at, path, flags) < 0)
        return wv_fail_errno(err, "mount", "at /%s", path + (*path == '/'));
    return 0;
}

int wv_mount_bind(const char *from, const char *path, uint64_t attr, struct wv_err *err)
{
    struct mount_attr set = {.attr_set = attr};

    if (syscall(SYS_mount, from, path, NULL, MOUNT_BIND, NULL) < 0)
        return wv_fail_errno(err, "mount", "%s at %s", from, path);
    if (attr != 0 &&
        syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &set, sizeof set) < 0)
        return wv_fail_errno(err, "mount", "restricting %s", path);
    return 0;
}

int wv_mount_private(struct wv_err *err)
{
    struct mount_attr set = {.propagation = MOUNT_PRIVATE};

    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &set, sizeof set) < 0)
        return wv_fail_errno(err, "mount", "making the mounts private");
    return 0;
}

int wv_mount_pivot(int root, struct wv_err *err)
{
    if (fchdir(root) < 0)
        return wv_fail_errno(err, "pivot", "entering the new root");
    /* Both at ".": the old root ends on top of the new one and is taken off there. */
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return wv_fail_errno(err, "pivot", "changing the root");
    if (syscall(SYS_umount2, ".", UMOUNT_DETACH) < 0)
        return wv_fail_errno(err, "pivot", "dropping the old root");
    if (chdir("/") < 0)
        return wv_fail_errno(err, "pivot", "entering /");
    return 0;
}
