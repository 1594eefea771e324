/* template_host.c - template of the host's own programs
 *
 * An allow list: /usr without its submounts, a copy of parts of /etc, and empty places.
 * Never mapped: the host's root is nobody inside, so the host's own permission bits go
 * on protecting what not everybody may read.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/dev.h"
#include "isolation/etc.h"
#include "isolation/jail.h"
#include "isolation/mount.h"
#include "isolation/proc.h"
#include "isolation/store.h"
#include "isolation/template.h"

#define TREE_ATTR (MOUNT_ATTR_RDONLY | WV_MOUNT_SAFE)

static const char *const dirs[] = {
    "etc",       "home",    "home/user", "mnt",       "opt", "run",
    "srv",       "sys",     "tmp",       "usr",       "var", "var/log",
    "var/cache", "var/lib", "var/tmp",   "workspace",
};

static const struct {
    const char *name, *target;
} links[] = {
    {"root",     "run/root"}, /* root's home: the session's, like all that is writable */
    {"var/run",  "/run"    },
    {"var/lock", "/run"    },
};

static const char *const programs[] = {"bin",   "sbin",   "lib",    "lib32",
                                       "lib64", "libx32", "libo32", "libn32"};

/* A tree of the host. What is mounted below it stays out, except where the kernel does
 * not let an unprivileged user look under a mount. */
static int take_tree(const struct wv_template *template, const char *path,
                     struct wv_err *err)
{
    int mount = wv_mount_clone(AT_FDCWD, path, 0, err);
    int deep = 0;

    if (mount < 0 && errno == EINVAL && template->unprivileged) {
        mount = wv_mount_clone(AT_FDCWD, path, 1, err);
        deep = 1;
    }
    if (mount >= 0 && wv_mount_restrict(mount, TREE_ATTR, -1, deep, err) < 0) {
        close(mount);
        return err != NULL ? err->code : WV_ESYSTEM;
    }
    return mount;
}

static int put_tree(const struct wv_template *template, int root, const char *name,
                    struct wv_err *err)
{
    char path[16];
    WV_AUTO(wv_fd_drop) int tree = -1;

    snprintf(path, sizeof path, "/%s", name);
    tree = take_tree(template, path, err);
    return tree < 0 ? tree : wv_mount_put(tree, root, name, err);
}

/* Links into /usr where the system is merged, else trees like /usr itself. */
static int put_programs(const struct wv_template *template, int root,
                        struct wv_err *err)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *name = programs[i];
        char path[16], target[PATH_MAX];
        struct stat seen;
        ssize_t n;
        int status;

        snprintf(path, sizeof path, "/%s", name);
        if (lstat(path, &seen) < 0)
            continue;
        if (S_ISLNK(seen.st_mode)) {
            n = readlink(path, target, sizeof target - 1);
            if (n < 0)
                return wv_fail_errno(err, "template", "link %s", path);
            target[n] = '\0';
            if (symlinkat(target, root, name) < 0)
                return wv_fail_errno(err, "template", "making link %s", path);
            continue;
        }
        if (mkdirat(root, name, 0755) < 0)
            return wv_fail_errno(err, "template", "directory %s", path);
        status = put_tree(template, root, name, err);
        if (status < 0)
            return status;
    }
    return 0;
}

static int furnish(const struct wv_template *template, int root, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int etc = -1;
    int status;

    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdirat(root, dirs[i], 0755) < 0)
            return wv_fail_errno(err, "template", "directory %s", dirs[i]);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlinkat(links[i].target, root, links[i].name) < 0)
            return wv_fail_errno(err, "template", "link %s", links[i].name);
    status = put_tree(template, root, "usr", err);
    if (status == 0)
        status = put_programs(template, root, err);
    if (status == 0)
        status = wv_dev_build(root, err);
    if (status < 0)
        return status;
    etc = openat(root, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (etc < 0)
        return wv_fail_errno(err, "template", "opening etc");
    return wv_etc_copy(etc, template->single, err);
}

int wv_template_host_build(struct wv_template *template, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int root = wv_template_shell(template, "64m", "16384", err);
    int status;

    if (root < 0)
        return root;
    status = furnish(template, root, err);
    if (status == 0)
        status = wv_mount_restrict(root, MOUNT_ATTR_RDONLY, -1, 0, err);
    return status < 0 ? status : wv_mount_pivot(root, err);
}

int wv_template_host_enter(struct wv_jail *jail, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int store = wv_store_make(jail, "/tmp", err);

    return store < 0 ? store : wv_proc_mount(jail, err);
}
