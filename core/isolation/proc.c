/* proc.c - /proc of one sandbox
 *
 * Most of what is covered here could not be opened anyway, because its owner, the
 * host's root, is nobody in the sandbox. The covers are the second lock, and the only
 * one for the files that everybody may read.
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/jail.h"
#include "isolation/mount.h"

enum cover { FILE_COVER, DIR_COVER, READ_ONLY };

/* Places that a guest can write to if ever its uid or a sysctl of the kernel lets it
 * come first; then what tells about the machine or its other users. */
static const struct {
    const char *path;
    enum cover cover;
} names[] = {
    {"/proc/sys",           READ_ONLY },
    {"/proc/irq",           READ_ONLY },
    {"/proc/bus",           READ_ONLY },
    {"/proc/fs",            READ_ONLY },
    {"/proc/sysrq-trigger", FILE_COVER},
    {"/proc/kcore",         FILE_COVER},
    {"/proc/kmsg",          FILE_COVER},
    {"/proc/keys",          FILE_COVER},
    {"/proc/key-users",     FILE_COVER},
    {"/proc/timer_list",    FILE_COVER},
    {"/proc/latency_stats", FILE_COVER},
    {"/proc/sched_debug",   FILE_COVER},
    {"/proc/interrupts",    FILE_COVER}, /* times another's keystrokes and packets */
    {"/proc/acpi",          DIR_COVER },
    {"/proc/scsi",          DIR_COVER },
    {"/proc/asound",        DIR_COVER },
};

_Static_assert(sizeof names / sizeof *names <= 64, "one bit each");

uint64_t wv_proc_masks(void)
{
    uint64_t masks = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (faccessat(AT_FDCWD, names[i].path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            masks |= (uint64_t)1 << i;
    return masks;
}

int wv_proc_mount(struct wv_jail *jail, struct wv_err *err)
{
    jail->proc = wv_mount_new("proc", NULL, 0, WV_MOUNT_SAFE | MOUNT_ATTR_NOEXEC, err);
    return jail->proc < 0 ? jail->proc : 0;
}

static int cover(const char *path, enum cover how, struct wv_err *err)
{
    switch (how) {
    case READ_ONLY:
        return wv_mount_bind(path, path, MOUNT_ATTR_RDONLY, err);
    case FILE_COVER:
        return wv_mount_bind("/dev/null", path, 0, err);
    case DIR_COVER: /* still the empty directory of a read-only tmpfs */
        return wv_mount_bind("/dev/shm", path, 0, err);
    default:
        return wv_fail(err, WV_EINVALID, "proc", "no such cover");
    }
}

int wv_proc_place(struct wv_jail *jail, struct wv_err *err)
{
    int status = wv_mount_put(jail->proc, AT_FDCWD, "/proc", err);

    if (status < 0)
        return status;
    wv_fd_drop(&jail->proc);
    if (wv_jail_omits(jail, WV_WALL_MASKS))
        return 0;
    for (size_t i = 0; status == 0 && i < sizeof names / sizeof *names; i++)
        if (jail->template->masks >> i & 1)
            status = cover(names[i].path, names[i].cover, err);
    return status;
}
