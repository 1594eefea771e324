/* cgroup_end.c - reading, freezing and ending a session's groups
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/cgroup.h"

#define FREEZE_TRIES                                                                   \
    20 /* of a millisecond each, until a version 1 group stands still */

static int write_at(int dir, const char *name, const char *text)
{
    WV_AUTO(wv_fd_drop) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -1 : wv_fd_write_all(fd, text, strlen(text));
}

static int open_dir(int at, const char *name)
{
    return at < 0 ? -1
                  : openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* --- counters ---------------------------------------------------------------- */

void wv_counters_init(struct wv_counters *counters)
{
    for (size_t i = 0; i < WV_COUNTS; i++) {
        counters->at[i].fd = -1;
        counters->at[i].key = NULL;
        counters->at[i].per = 1;
    }
}

void wv_counters_fini(struct wv_counters *counters)
{
    for (size_t i = 0; i < WV_COUNTS; i++)
        wv_fd_drop(&counters->at[i].fd);
}

static uint64_t read_counter(int fd, const char *key, unsigned per)
{
    char text[1024];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    const char *at = text;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (key != NULL) {
        size_t len = strlen(key);

        while (at != NULL && !(strncmp(at, key, len) == 0 && at[len] == ' ')) {
            at = strchr(at, '\n');
            at = at == NULL ? NULL : at + 1;
        }
        if (at == NULL)
            return 0;
        at += len;
    }
    return strtoull(at, NULL, 10) / per;
}

void wv_counters_read(const struct wv_counters *counters, struct wv_usage *usage)
{
    uint64_t *const to[WV_COUNTS] = {
        [WV_COUNT_MEMORY] = &usage->memory,
        [WV_COUNT_MEMORY_PEAK] = &usage->memory_peak,
        [WV_COUNT_MEMORY_HITS] = &usage->memory_hits,
        [WV_COUNT_OOM] = &usage->oom_kills,
        [WV_COUNT_CPU] = &usage->cpu_us,
        [WV_COUNT_THROTTLED] = &usage->throttled_us,
        [WV_COUNT_PIDS] = &usage->pids,
        [WV_COUNT_PIDS_HITS] = &usage->pids_hits,
    };

    for (size_t i = 0; i < WV_COUNTS; i++)
        *to[i] =
            read_counter(counters->at[i].fd, counters->at[i].key, counters->at[i].per);
    /* Recent kernels no longer count failures in version 1; what killed was one. */
    if (usage->memory_hits < usage->oom_kills)
        usage->memory_hits = usage->oom_kills;
}

/* --- freezing ---------------------------------------------------------------- */

int wv_cgroup_freeze(const struct wv_cgroups *groups, uint32_t number, int on,
                     struct wv_err *err)
{
    char name[24];

    snprintf(name, sizeof name, "s%u/work", number);
    for (unsigned i = 0; i < groups->n; i++) {
        const struct wv_hierarchy *at = &groups->at[i];
        WV_AUTO(wv_fd_drop) int dir = -1;
        int rc;

        if ((at->has & WV_CG_BIT(WV_CG_FREEZER)) == 0)
            continue;
        dir = open_dir(at->owner, name);
        rc = dir < 0  ? -1
             : at->v2 ? write_at(dir, "cgroup.freeze", on ? "1" : "0")
                      : write_at(dir, "freezer.state", on ? "FROZEN" : "THAWED");
        return rc < 0 ? wv_fail_errno(err, "cgroup", "freezing %s", name) : 0;
    }
    return wv_fail(err, WV_EUNSUPPORTED, "cgroup", "no freezer here");
}

/* --- ending ------------------------------------------------------------------ */

/* Kill by pid what is in dir's list. The group stands still or is about to be empty,
 * and the list was read just now. */
static void kill_listed(int dir)
{
    int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    int pid;

    if (file == NULL) {
        wv_fd_drop(&fd);
        return;
    }
    while (fscanf(file, "%d", &pid) == 1)
        if (pid > 1)
            kill(pid, SIGKILL);
    fclose(file);
}

static void wait_frozen(int dir)
{
    for (int i = 0; i < FREEZE_TRIES; i++) {
        WV_AUTO(wv_fd_drop) int fd = openat(dir, "freezer.state", O_RDONLY | O_CLOEXEC);
        char state[16] = "";

        if (fd < 0 || read(fd, state, sizeof state - 1) <= 0 ||
            strncmp(state, "FROZEN", 6) == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* A group that forks faster than it is read must stand still while it is. */
static void kill_group(const struct wv_hierarchy *at, int dir)
{
    static const char *const below[] = {"work", "agent"};
    int freezes = !at->v2 && (at->has & WV_CG_BIT(WV_CG_FREEZER)) != 0;

    if (at->v2 && write_at(dir, "cgroup.kill", "1") == 0)
        return;
    if (freezes && write_at(dir, "freezer.state", "FROZEN") == 0)
        wait_frozen(dir);
    kill_listed(dir);
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        WV_AUTO(wv_fd_drop) int child = open_dir(dir, below[i]);

        if (child >= 0)
            kill_listed(child);
    }
    if (freezes)
        write_at(dir, "freezer.state", "THAWED");
}

static int remove_named(const struct wv_hierarchy *at, const char *name)
{
    WV_AUTO(wv_fd_drop) int dir = open_dir(at->owner, name);

    if (dir < 0)
        return 0;
    for (int tries = 0; tries < 2; tries++) {
        if ((unlinkat(dir, "work", AT_REMOVEDIR) == 0 || errno == ENOENT) &&
            (unlinkat(dir, "agent", AT_REMOVEDIR) == 0 || errno == ENOENT) &&
            (unlinkat(at->owner, name, AT_REMOVEDIR) == 0 || errno == ENOENT))
            return 0;
        if (tries == 0)
            kill_group(at, dir);
    }
    return 1;
}

int wv_cgroup_remove(const struct wv_cgroups *groups, uint32_t number)
{
    char name[16];
    int left = 0;

    snprintf(name, sizeof name, "s%u", number);
    for (unsigned i = groups->n; i-- > 0;)
        left |= remove_named(&groups->at[i], name);
    return left;
}

/* Last hierarchy first: that is the freezer, whose kill is the thorough one. */
int wv_cgroups_remove(struct wv_cgroups *groups, const char *owner)
{
    int left = 0;

    for (unsigned i = groups->n; i-- > 0;) {
        struct wv_hierarchy *at = &groups->at[i];
        int fd = open_dir(at->top, owner);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        if (dir == NULL) {
            wv_fd_drop(&fd);
            continue;
        }
        while ((entry = readdir(dir)) != NULL)
            if (entry->d_name[0] == 's' && entry->d_name[1] >= '0' &&
                entry->d_name[1] <= '9')
                left |= remove_named(at, entry->d_name);
        closedir(dir);
        if (unlinkat(at->top, owner, AT_REMOVEDIR) < 0 && errno != ENOENT)
            left = 1;
    }
    return left;
}
