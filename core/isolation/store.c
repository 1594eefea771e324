/* store.c - the one writable store of a session
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/jail.h"
#include "isolation/mount.h"

#define USER 1000 /* the default user of host templates; see template_host.c */

struct part {
    const char *name, *place;
    mode_t mode;
    uid_t owner;
    int host; /* only for the host template: images have a home of their own */
};

/* The last part covers the place where the store is attached; then the store itself,
 * and in it the layers of a rootfs, can be reached by no path. */
static const struct part parts[] = {
    {"workspace", "/workspace", 0755,  USER, 0},
    {"home",      "/home/user", 0755,  USER, 1},
    {"shm",       "/dev/shm",   01777, 0,    0},
    {"vartmp",    "/var/tmp",   01777, 0,    0},
    {"run",       "/run",       0755,  0,    0},
    {"tmp",       "/tmp",       01777, 0,    0},
};

#define PARTS (sizeof parts / sizeof *parts)

static int make_dir(int at, const char *name, mode_t mode, uid_t owner,
                    struct wv_err *err)
{
    if (mkdirat(at, name, mode) < 0 || fchownat(at, name, owner, owner, 0) < 0)
        return wv_fail_errno(err, "store", "directory %s", name);
    return 0;
}

/* machine-id is fresh per session; /etc/machine-id is a link to it. */
static int make_run(int store, const struct wv_jail *jail, struct wv_err *err)
{
    const struct wv_plan *plan = jail->plan;
    WV_AUTO(wv_fd_drop) int id = -1;
    char line[40];
    int n = snprintf(line, sizeof line, "%.32s\n", plan->machine_id);

    id = openat(store, "run/machine-id", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (id < 0 || wv_fd_write_all(id, line, (size_t)n) < 0 ||
        fchown(id, jail->base, jail->base) < 0)
        return wv_fail_errno(err, "store", "machine-id");
    return make_dir(store, "run/root", 0700, jail->base, err);
}

static int make_parts(struct wv_jail *jail, int store, struct wv_err *err)
{
    for (size_t i = 0; i < PARTS; i++) {
        const struct part *part = &parts[i];
        uid_t owner = jail->template->single ? 0 : part->owner;
        int status;

        if (part->host && jail->template->rootfs)
            continue;
        status = make_dir(store, part->name, part->mode, jail->base + owner, err);
        if (status < 0)
            return status;
    }
    if (jail->template->rootfs) {
        int status = make_dir(store, "upper", 0755, jail->base, err);

        if (status == 0)
            status = make_dir(store, "work", 0700, jail->base, err);
        if (status < 0)
            return status;
    }
    return make_run(store, jail, err);
}

int wv_store_make(struct wv_jail *jail, const char *path, struct wv_err *err)
{
    const struct wv_plan *plan = jail->plan;
    uint64_t most = plan->inodes > 0 ? plan->inodes : plan->disk / 4096;
    char size[24], inodes[24];
    const struct wv_mount_option options[] = {
        {"size",      size  },
        {"nr_inodes", inodes},
        {"mode",      "0711"},
    };
    WV_AUTO(wv_fd_drop) int store = -1;
    mode_t mask;
    int status;

    /* To tmpfs, 0 means without bounds. */
    if (plan->disk == 0 || most == 0)
        return wv_fail(err, WV_EINVALID, "store", "a store needs a size");
    snprintf(size, sizeof size, "%" PRIu64, plan->disk);
    snprintf(inodes, sizeof inodes, "%" PRIu64, most);
    store = wv_mount_new("tmpfs", options, sizeof options / sizeof *options,
                         WV_MOUNT_SAFE, err);
    if (store < 0)
        return store;
    mask = umask(0);
    status = make_parts(jail, store, err);
    umask(mask);
    if (status == 0)
        status = wv_mount_put(store, AT_FDCWD, path, err);
    return status < 0 ? status : wv_fd_take(&store);
}

int wv_store_place(struct wv_jail *jail, struct wv_err *err)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < PARTS; i++) {
        const char *place = parts[i].place;
        char part[32];

        if (parts[i].host && jail->template->rootfs)
            continue;
        if (jail->template->rootfs && mkdir(place, parts[i].mode) < 0 &&
            errno != EEXIST)
            return wv_fail_errno(err, "store", "making %s", place);
        snprintf(part, sizeof part, "/tmp/%s", parts[i].name);
        status = wv_mount_bind(part, place, 0, err);
    }
    return status;
}
