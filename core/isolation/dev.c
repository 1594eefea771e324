/* dev.c - /dev of a template and /dev/pts of a session
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/jail.h"
#include "isolation/mount.h"

#define NODE_ATTR (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)
#define TTY_GROUP 5
#define TERMINALS_MAX "256"

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {
    {"null",    1, 3},
    {"zero",    1, 5},
    {"full",    1, 7},
    {"random",  1, 8},
    {"urandom", 1, 9},
    {"tty",     5, 0},
};

static const struct {
    const char *name, *target;
} links[] = {
    {"fd",     "/proc/self/fd"  },
    {"stdin",  "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"},
    {"ptmx",   "pts/ptmx"       },
};

/* Where devices cannot be made, the host's own node is bound over a file; it must be
 * the device it claims to be. */
static int borrow(int dir, const char *name, dev_t device, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int file = -1;
    WV_AUTO(wv_fd_drop) int mount = -1;
    char path[32];
    struct stat seen;
    int status;

    file = openat(dir, name, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return wv_fail_errno(err, "dev", "file for %s", name);
    snprintf(path, sizeof path, "/dev/%s", name);
    mount = wv_mount_clone(AT_FDCWD, path, 0, err);
    if (mount < 0)
        return mount;
    if (fstat(mount, &seen) < 0 || !S_ISCHR(seen.st_mode) || seen.st_rdev != device)
        return wv_fail(err, WV_EUNSUPPORTED, "dev", "%s is not the device", path);
    status = wv_mount_restrict(mount, NODE_ATTR, -1, 0, err);
    return status < 0 ? status : wv_mount_put(mount, dir, name, err);
}

static int make_nodes(int dir, struct wv_err *err)
{
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        dev_t device = makedev(nodes[i].major, nodes[i].minor);
        int status;

        if (mknodat(dir, nodes[i].name, S_IFCHR | 0666, device) == 0)
            continue;
        if (errno != EPERM)
            return wv_fail_errno(err, "dev", "making %s", nodes[i].name);
        status = borrow(dir, nodes[i].name, device, err);
        if (status < 0)
            return status;
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlinkat(links[i].target, dir, links[i].name) < 0)
            return wv_fail_errno(err, "dev", "link %s", links[i].name);
    if (mkdirat(dir, "pts", 0755) < 0 || mkdirat(dir, "shm", 0755) < 0 ||
        mkdirat(dir, "mqueue", 0755) < 0)
        return wv_fail_errno(err, "dev", "directories");
    return 0;
}

int wv_dev_build(int at, struct wv_err *err)
{
    static const struct wv_mount_option options[] = {
        {"size",      "64k" },
        {"nr_inodes", "64"  },
        {"mode",      "0755"},
    };
    WV_AUTO(wv_fd_drop) int dev = -1;
    mode_t mask;
    int status;

    dev = wv_mount_new("tmpfs", options, sizeof options / sizeof *options,
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
    if (dev < 0)
        return dev;
    /* Placed first: before Linux 6.15 nothing can be bound inside a detached mount. */
    status = wv_mount_put(dev, at, "dev", err);
    if (status < 0)
        return status;
    mask = umask(0);
    status = make_nodes(dev, err);
    umask(mask);
    if (status < 0)
        return status;
    return wv_mount_restrict(dev, MOUNT_ATTR_RDONLY, -1, 0, err);
}

int wv_dev_terminals(struct wv_jail *jail, struct wv_err *err)
{
    char gid[16];
    const struct wv_mount_option options[] = {
        {"ptmxmode",                            "0666"       },
        {"mode",                                "0620"       },
        {"max",                                 TERMINALS_MAX},
        {jail->template->single ? NULL : "gid", gid          },
    };
    WV_AUTO(wv_fd_drop) int pts = -1;

    snprintf(gid, sizeof gid, "%u", (unsigned)jail->base + TTY_GROUP);
    pts = wv_mount_new("devpts", options, sizeof options / sizeof *options,
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
    if (pts < 0)
        return pts;
    return wv_mount_put(pts, AT_FDCWD, "/dev/pts", err);
}
