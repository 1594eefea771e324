/* cgroup.c - finding hierarchies and making a session's groups
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static const char *const names[WV_CG_CONTROLLERS] = {
    [WV_CG_MEMORY] = "memory",   [WV_CG_PIDS] = "pids",       [WV_CG_CPU] = "cpu",
    [WV_CG_CPUACCT] = "cpuacct", [WV_CG_FREEZER] = "freezer",
};

/* What version 2 has without a controller: cpu.stat and cgroup.freeze. */
#define ALWAYS_V2 (WV_CG_BIT(WV_CG_CPUACCT) | WV_CG_BIT(WV_CG_FREEZER))
#define NEED_V2 (WV_CG_BIT(WV_CG_MEMORY) | WV_CG_BIT(WV_CG_PIDS) | WV_CG_BIT(WV_CG_CPU))

static int open_dir(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int make_dir(int at, const char *name)
{
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return open_dir(at, name);
}

static int write_at(int dir, const char *name, const char *text)
{
    WV_AUTO(wv_fd_drop) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -1 : wv_fd_write_all(fd, text, strlen(text));
}

/* Is word one of the items of a list with these separators? */
static int listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || strchr(", \n", at[-1]) != NULL) &&
            (at[len] == '\0' || strchr(", \n", at[len]) != NULL))
            return 1;
    return 0;
}

/* --- finding hierarchies ----------------------------------------------------- */

struct mounts {
    char v1[WV_CG_CONTROLLERS][256]; /* mount point per controller, "" if none */
    char v2[256];
};

static void read_mounts(struct mounts *mounts)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[4096];

    memset(mounts, 0, sizeof *mounts);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *tail = strstr(line, " - "), point[256], type[16], options[1024];

        if (tail == NULL || sscanf(line, "%*s %*s %*s %*s %255s", point) != 1 ||
            sscanf(tail, " - %15s %*s %1023s", type, options) != 2)
            continue;
        if (strcmp(type, "cgroup2") == 0 && mounts->v2[0] == '\0')
            memcpy(mounts->v2, point, sizeof point);
        if (strcmp(type, "cgroup") != 0)
            continue;
        for (int i = 0; i < WV_CG_CONTROLLERS; i++)
            if (mounts->v1[i][0] == '\0' && listed(options, names[i]))
                memcpy(mounts->v1[i], point, sizeof point);
    }
    if (file != NULL)
        fclose(file);
}

/* Let the children of dir have what they can; returns what they do have. */
static uint8_t delegate(int dir)
{
    static const int wanted[] = {WV_CG_MEMORY, WV_CG_PIDS, WV_CG_CPU};
    char have[512];
    ssize_t n;
    uint8_t bits = ALWAYS_V2;
    WV_AUTO(wv_fd_drop) int fd = -1;

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char text[16];

        snprintf(text, sizeof text, "+%s", names[wanted[i]]);
        write_at(dir, "cgroup.subtree_control", text);
    }
    fd = openat(dir, "cgroup.subtree_control", O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, have, sizeof have - 1);
    have[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (listed(have, names[wanted[i]]))
            bits |= (uint8_t)WV_CG_BIT(wanted[i]);
    return bits;
}

/* Where we may make groups: the root, or for an ordinary user the highest ancestor of
 * our own group that was given to us. */
static int open_v2(const char *mount)
{
    WV_AUTO(wv_fd_drop) int best = -1;
    FILE *file;
    char line[1024], path[1400];

    if (geteuid() == 0)
        return open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file = fopen("/proc/self/cgroup", "re");
    path[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(path, sizeof path, "%s%s", mount, line + 3);
        }
    if (file != NULL)
        fclose(file);
    while (strlen(path) > strlen(mount)) {
        struct stat seen;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &seen) < 0 || seen.st_uid != geteuid() ||
            faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0) {
            wv_fd_drop(&fd);
            break;
        }
        wv_fd_drop(&best);
        best = fd;
        *strrchr(path, '/') = '\0';
    }
    return wv_fd_take(&best);
}

static void add(struct wv_cgroups *groups, int *top, const char *owner, uint8_t has,
                uint8_t v2)
{
    struct wv_hierarchy *at = &groups->at[groups->n];
    int dir = make_dir(*top, owner);

    if (dir < 0)
        return;
    *at = (struct wv_hierarchy){
        .top = wv_fd_take(top), .owner = dir, .has = has, .v2 = v2};
    groups->has |= has;
    groups->n++;
}

static void use_v2(struct wv_cgroups *groups, const char *mount, const char *owner,
                   uint8_t only)
{
    WV_AUTO(wv_fd_drop) int root = open_v2(mount);
    WV_AUTO(wv_fd_drop) int top = -1;
    uint8_t has;

    if (root < 0)
        return;
    delegate(root);
    top = make_dir(root, "wovyr");
    if (top < 0)
        return;
    delegate(top);
    add(groups, &top, owner, 0, 1);
    if (groups->n == 0)
        return;
    has = delegate(groups->at[0].owner);
    if (only == 0 && (has & NEED_V2) == 0) {
        /* Nothing that version 1 would not do as well: leave it alone. Another owner,
         * dead by now, may have seen that differently. */
        wv_fd_drop(&groups->at[0].owner);
        unlinkat(groups->at[0].top, owner, AT_REMOVEDIR);
        return;
    }
    groups->at[0].has = groups->has = has;
}

static void use_v1(struct wv_cgroups *groups, const struct mounts *mounts,
                   const char *owner)
{
    for (int i = 0; i < WV_CG_CONTROLLERS; i++) {
        WV_AUTO(wv_fd_drop) int root = -1;
        WV_AUTO(wv_fd_drop) int top = -1;
        uint8_t has = 0;

        if (mounts->v1[i][0] == '\0' || (groups->has & WV_CG_BIT(i)) != 0)
            continue;
        for (int j = i; j < WV_CG_CONTROLLERS; j++)
            if (strcmp(mounts->v1[j], mounts->v1[i]) == 0)
                has |= (uint8_t)WV_CG_BIT(j);
        root = open(mounts->v1[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        top = root < 0 ? -1 : make_dir(root, "wovyr");
        if (top < 0)
            continue;
        if (i == WV_CG_MEMORY)
            write_at(top, "memory.use_hierarchy", "1");
        add(groups, &top, owner, has & (uint8_t)~groups->has, 0);
    }
}

void wv_cgroups_init(struct wv_cgroups *groups, const char *owner)
{
    struct mounts mounts;

    *groups = (struct wv_cgroups){0};
    read_mounts(&mounts);
    if (mounts.v2[0] != '\0')
        use_v2(groups, mounts.v2, owner, mounts.v1[WV_CG_FREEZER][0] == '\0');
    use_v1(groups, &mounts, owner);
}

void wv_cgroups_fini(struct wv_cgroups *groups)
{
    for (unsigned i = 0; i < groups->n; i++) {
        wv_fd_drop(&groups->at[i].top);
        wv_fd_drop(&groups->at[i].owner);
    }
    *groups = (struct wv_cgroups){0};
}

void wv_cgroups_of(const struct wv_cgroups *groups, const char *owner,
                   struct wv_cgroups *other)
{
    *other = *groups;
    for (unsigned i = 0; i < groups->n; i++) {
        other->at[i].top = fcntl(groups->at[i].top, F_DUPFD_CLOEXEC, 3);
        other->at[i].owner = open_dir(groups->at[i].top, owner);
    }
}

/* --- a session's groups ------------------------------------------------------ */

static int open_for(int dir, const char *name, int flags)
{
    return openat(dir, name, flags | O_CLOEXEC);
}

static void count(struct wv_cgroup *made, enum wv_counter which, int dir,
                  const char *file, const char *key, unsigned per)
{
    if (made->counters.at[which].fd >= 0)
        return;
    made->counters.at[which].fd = open_for(dir, file, O_RDONLY);
    made->counters.at[which].key = key;
    made->counters.at[which].per = per;
}

static int make_v1(const struct wv_hierarchy *at, int dir, struct wv_cgroup *made,
                   struct wv_err *err)
{
    unsigned has = at->has;
    WV_AUTO(wv_fd_drop) int work = -1;

    made->joins[made->n_joins] = open_for(dir, "tasks", O_WRONLY);
    if (made->joins[made->n_joins] < 0)
        return wv_fail_errno(err, "cgroup", "opening tasks");
    made->n_joins++;
    if (has & WV_CG_BIT(WV_CG_MEMORY)) {
        write_at(dir, "memory.use_hierarchy", "1");
        made->set_memory = open_for(dir, "memory.limit_in_bytes", O_WRONLY);
        made->set_swap = open_for(dir, "memory.memsw.limit_in_bytes", O_WRONLY);
        count(made, WV_COUNT_MEMORY, dir, "memory.usage_in_bytes", NULL, 1);
        count(made, WV_COUNT_MEMORY_PEAK, dir, "memory.max_usage_in_bytes", NULL, 1);
        /* With both limits the same, the one with swap is met first. */
        count(made, WV_COUNT_MEMORY_HITS, dir, "memory.memsw.failcnt", NULL, 1);
        count(made, WV_COUNT_MEMORY_HITS, dir, "memory.failcnt", NULL, 1);
        count(made, WV_COUNT_OOM, dir, "memory.oom_control", "oom_kill", 1);
    }
    if (has & WV_CG_BIT(WV_CG_PIDS)) {
        made->set_pids = open_for(dir, "pids.max", O_WRONLY);
        count(made, WV_COUNT_PIDS, dir, "pids.current", NULL, 1);
        count(made, WV_COUNT_PIDS_HITS, dir, "pids.events", "max", 1);
    }
    if (has & WV_CG_BIT(WV_CG_CPUACCT))
        count(made, WV_COUNT_CPU, dir, "cpuacct.usage", NULL, 1000);
    if ((has & (WV_CG_BIT(WV_CG_CPU) | WV_CG_BIT(WV_CG_FREEZER))) == 0)
        return 0;
    work = make_dir(dir, "work");
    made->works[made->n_works] = work < 0 ? -1 : open_for(work, "tasks", O_WRONLY);
    if (made->works[made->n_works] < 0)
        return wv_fail_errno(err, "cgroup", "making work");
    made->n_works++;
    if (has & WV_CG_BIT(WV_CG_CPU)) {
        char period[16];

        snprintf(period, sizeof period, "%d", WV_CG_PERIOD_US);
        write_at(work, "cpu.cfs_period_us", period);
        made->set_cpu = open_for(work, "cpu.cfs_quota_us", O_WRONLY);
        count(made, WV_COUNT_THROTTLED, work, "cpu.stat", "throttled_time", 1000);
    }
    return 0;
}

static int make_v2(const struct wv_hierarchy *at, int dir, struct wv_cgroup *made,
                   struct wv_err *err)
{
    unsigned has = at->has;
    WV_AUTO(wv_fd_drop) int work = -1;

    if (has & WV_CG_BIT(WV_CG_CPU))
        write_at(dir, "cgroup.subtree_control", "+cpu");
    made->born = make_dir(dir, "agent");
    work = make_dir(dir, "work");
    if (made->born < 0 || work < 0)
        return wv_fail_errno(err, "cgroup", "making agent and work");
    made->works[made->n_works] = open_for(work, "cgroup.procs", O_WRONLY);
    if (made->works[made->n_works] < 0)
        return wv_fail_errno(err, "cgroup", "opening cgroup.procs");
    made->n_works++;
    if (has & WV_CG_BIT(WV_CG_MEMORY)) {
        write_at(dir, "memory.swap.max", "0");
        made->set_memory = open_for(dir, "memory.max", O_WRONLY);
        count(made, WV_COUNT_MEMORY, dir, "memory.current", NULL, 1);
        count(made, WV_COUNT_MEMORY_PEAK, dir, "memory.peak", NULL, 1);
        count(made, WV_COUNT_MEMORY_HITS, dir, "memory.events", "max", 1);
        count(made, WV_COUNT_OOM, dir, "memory.events", "oom_kill", 1);
    }
    if (has & WV_CG_BIT(WV_CG_PIDS)) {
        made->set_pids = open_for(dir, "pids.max", O_WRONLY);
        count(made, WV_COUNT_PIDS, dir, "pids.current", NULL, 1);
        count(made, WV_COUNT_PIDS_HITS, dir, "pids.events", "max", 1);
    }
    if (has & WV_CG_BIT(WV_CG_CPUACCT))
        count(made, WV_COUNT_CPU, dir, "cpu.stat", "usage_usec", 1);
    if (has & WV_CG_BIT(WV_CG_CPU)) {
        made->set_cpu = open_for(work, "cpu.max", O_WRONLY);
        made->cpu_v2 = 1;
        count(made, WV_COUNT_THROTTLED, work, "cpu.stat", "throttled_usec", 1);
    }
    return 0;
}

int wv_cgroup_make(const struct wv_cgroups *groups, uint32_t number,
                   struct wv_cgroup *made, struct wv_err *err)
{
    char name[16];

    *made = (struct wv_cgroup){
        .born = -1, .set_memory = -1, .set_swap = -1, .set_pids = -1, .set_cpu = -1};
    wv_counters_init(&made->counters);
    snprintf(name, sizeof name, "s%u", number);
    for (unsigned i = 0; i < groups->n; i++) {
        const struct wv_hierarchy *at = &groups->at[i];
        WV_AUTO(wv_fd_drop) int dir = -1;
        int rc;

        if (at->owner < 0)
            continue;
        dir = make_dir(at->owner, name);
        if (dir < 0)
            rc = wv_fail_errno(err, "cgroup", "making %s", name);
        else
            rc = at->v2 ? make_v2(at, dir, made, err) : make_v1(at, dir, made, err);
        if (rc < 0) {
            wv_cgroup_fini(made);
            wv_counters_fini(&made->counters);
            wv_cgroup_remove(groups, number);
            return rc;
        }
    }
    return 0;
}

void wv_cgroup_fini(struct wv_cgroup *made)
{
    wv_fd_drop(&made->born);
    for (unsigned i = 0; i < made->n_joins; i++)
        wv_fd_drop(&made->joins[i]);
    for (unsigned i = 0; i < made->n_works; i++)
        wv_fd_drop(&made->works[i]);
    wv_fd_drop(&made->set_memory);
    wv_fd_drop(&made->set_swap);
    wv_fd_drop(&made->set_pids);
    wv_fd_drop(&made->set_cpu);
    made->n_joins = made->n_works = 0;
}
