/* template.c - a mount namespace prepared once
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/template.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/mount.h"
#include "isolation/proc.h"

/* A user namespace entered from outside without privileges may mount a proc only where
 * it sees a complete one; this one stays below the proc of every session. */
static int keep_proc(int root, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int proc = wv_mount_new("proc", NULL, 0, WV_MOUNT_SAFE, err);

    if (proc < 0)
        return proc;
    return wv_mount_put(proc, root, "proc", err);
}

int wv_template_shell(const struct wv_template *template, const char *size,
                      const char *inodes, struct wv_err *err)
{
    const struct wv_mount_option options[] = {
        {"size",      size  },
        {"nr_inodes", inodes},
        {"mode",      "0755"},
    };
    WV_AUTO(wv_fd_drop) int root = -1;
    int status;

    root = wv_mount_new("tmpfs", options, sizeof options / sizeof *options,
                        WV_MOUNT_SAFE, err);
    if (root < 0)
        return root;
    /* Any directory serves until the pivot. */
    status = wv_mount_put(root, AT_FDCWD, "/tmp", err);
    if (status < 0)
        return status;
    if (mkdirat(root, "dev", 0755) < 0 || mkdirat(root, "proc", 0555) < 0)
        return wv_fail_errno(err, "template", "first directories");
    if (template->unprivileged) {
        status = keep_proc(root, err);
        if (status < 0)
            return status;
    }
    return wv_fd_take(&root);
}

int wv_template_build(struct wv_template *template, const char *source,
                      struct wv_err *err)
{
    int status = wv_mount_private(err);

    if (status < 0)
        return status;
    template->masks = wv_proc_masks();
    if (template->rootfs)
        return wv_template_rootfs_build(template, source, err);
    return wv_template_host_build(template, err);
}
