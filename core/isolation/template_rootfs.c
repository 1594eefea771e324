/* template_rootfs.c - template of a directory that wovyr unpacked itself
 *
 * The template namespace is a shell of empty places:
 *
 *   /image   the unpacked tree, read-only, as it lies in the store
 *   /lower   a session's clone of it, its ids shifted into the session's range
 *   /store   the session's tmpfs, with the upper layer
 *   /root    overlay of the two, which becomes the session's root
 *   /dev     shared; bound into every session's root
 *
 * Only trees that wovyr unpacked are ever mapped: in a mapped tree root of the sandbox
 * is the owner of what root owns.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/dev.h"
#include "isolation/jail.h"
#include "isolation/mount.h"
#include "isolation/proc.h"
#include "isolation/store.h"
#include "isolation/template.h"

#define IMAGE_ATTR (MOUNT_ATTR_RDONLY | WV_MOUNT_SAFE)

int wv_template_rootfs_build(struct wv_template *template, const char *source,
                             struct wv_err *err)
{
    static const char *const dirs[] = {"image", "lower", "store", "root"};
    WV_AUTO(wv_fd_drop) int image = wv_mount_clone(AT_FDCWD, source, 0, err);
    WV_AUTO(wv_fd_drop) int root = -1;
    int status;

    if (image < 0)
        return image;
    status = wv_mount_restrict(image, IMAGE_ATTR, -1, 0, err);
    if (status < 0)
        return status;
    root = wv_template_shell(template, "64k", "32", err);
    if (root < 0)
        return root;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (mkdirat(root, dirs[i], 0755) < 0)
            return wv_fail_errno(err, "template", "directory %s", dirs[i]);
    status = wv_dev_build(root, err);
    if (status == 0)
        status = wv_mount_put(image, root, "image", err);
    if (status == 0)
        status = wv_mount_restrict(root, MOUNT_ATTR_RDONLY, -1, 0, err);
    return status < 0 ? status : wv_mount_pivot(root, err);
}

/* The image as this session sees it. */
static int make_lower(const struct wv_jail *jail, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int lower = wv_mount_clone(AT_FDCWD, "/image", 0, err);
    int status;

    if (lower < 0)
        return lower;
    /* Unprivileged, the tree was unpacked with the ids that it is used with. */
    if (jail->user >= 0 && !jail->template->unprivileged) {
        status = wv_mount_restrict(lower, 0, jail->user, 0, err);
        if (status < 0)
            return status;
    }
    return wv_mount_put(lower, AT_FDCWD, "/lower", err);
}

static int make_overlay(const struct wv_jail *jail, struct wv_err *err)
{
    /* Without redirect_dir a rename of a directory of the image is EXDEV: npm and git
     * break, mv copies. Where extended attributes of the system cannot be had, it
     * cannot be had either. */
    int user = jail->template->unprivileged;
    const struct wv_mount_option options[] = {
        {"lowerdir",                          "/lower"          },
        {"upperdir",                          "/store/upper"    },
        {"workdir",                           "/store/work"     },
        {user ? "userxattr" : "redirect_dir", user ? NULL : "on"},
    };
    int overlay;

    overlay = wv_mount_new("overlay", options, sizeof options / sizeof *options,
                           WV_MOUNT_SAFE, err);
    if (overlay < 0)
        return overlay;
    if (wv_mount_put(overlay, AT_FDCWD, "/root", err) < 0) {
        close(overlay);
        return err != NULL ? err->code : WV_ESYSTEM;
    }
    return overlay;
}

/* A directory of the image: made where it lacks one, but a link of it is not followed.
 */
static int put_dir(int mount, int root, const char *name, mode_t mode,
                   struct wv_err *err)
{
    if (mkdirat(root, name, mode) < 0 && errno != EEXIST)
        return wv_fail_errno(err, "root", "making /%s", name);
    return mount < 0 ? 0 : wv_mount_put(mount, root, name, err);
}

int wv_template_rootfs_enter(struct wv_jail *jail, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int store = wv_store_make(jail, "/store", err);
    WV_AUTO(wv_fd_drop) int dev = -1;
    WV_AUTO(wv_fd_drop) int root = -1;
    int status;

    if (store < 0)
        return store;
    status = make_lower(jail, err);
    if (status < 0)
        return status;
    dev = wv_mount_clone(AT_FDCWD, "/dev", 1, err);
    if (dev < 0)
        return dev;
    root = make_overlay(jail, err);
    if (root < 0)
        return root;
    status = wv_proc_mount(jail, err);
    if (status == 0)
        status = put_dir(store, root, "tmp", 01777, err);
    if (status == 0)
        status = put_dir(dev, root, "dev", 0755, err);
    if (status == 0)
        status = put_dir(-1, root, "proc", 0555, err);
    /* From here on paths are the image's, and its links can lead nowhere else. */
    return status < 0 ? status : wv_mount_pivot(root, err);
}
