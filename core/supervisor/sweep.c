/* sweep.c - removing what dead owners left behind
 *
 * Theory of operation. The order is what makes it safe to die anywhere: the owner's
 * lock is held throughout; its processes end first (groups until empty), then the ids
 * they ran under become free, then the files, and the directory, by which all of this
 * was found, goes last. A sweep that is itself killed is found again by the next.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define PATIENCE_MS                                                                    \
    10000 /* for groups to become empty, and for a lock of the just died */
#define PAUSE_MS 10

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* With the owner's lock held. Groups that will not empty keep the owner's name alive.
 * */
static void sweep_claimed(const struct wv_owner *owner, const struct wv_cgroups *groups,
                          const char *id)
{
    struct wv_cgroups theirs;
    int left, guard, waited = 0;

    wv_cgroups_of(groups, id, &theirs);
    while ((left = wv_cgroups_remove(&theirs, id)) != 0 && waited < PATIENCE_MS) {
        pause_ms(PAUSE_MS);
        waited += PAUSE_MS;
    }
    wv_cgroups_fini(&theirs);
    if (left)
        return;
    wv_lease_sweep(owner, id);
    guard = wv_owner_guard(owner, NULL);
    wv_owner_remove(owner, id);
    wv_fd_drop(&guard);
}

void wv_sweep_others(const struct wv_owner *owner, const struct wv_cgroups *groups)
{
    int fd = openat(owner->run, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (dir == NULL) {
        wv_fd_drop(&fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        WV_AUTO(wv_fd_drop) int lock = -1;

        if (!wv_owner_is_id(entry->d_name) || strcmp(entry->d_name, owner->id) == 0)
            continue;
        lock = wv_owner_claim(owner, entry->d_name, NULL);
        if (lock >= 0)
            sweep_claimed(owner, groups, entry->d_name);
    }
    closedir(dir);
    wv_lease_sweep(owner, NULL);
}

void wv_sweep_own(const struct wv_owner *owner, const struct wv_cgroups *groups)
{
    /* Its sockets hang up a moment before its lock is free. */
    for (int waited = 0; waited < PATIENCE_MS; waited += PAUSE_MS) {
        WV_AUTO(wv_fd_drop) int lock = wv_owner_claim(owner, owner->id, NULL);

        if (lock >= 0)
            sweep_claimed(owner, groups, owner->id);
        if (lock != WV_EAGAIN)
            return;
        pause_ms(PAUSE_MS);
    }
}
