/* user.c - user namespaces and the ids they are made of
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

static int write_file(const char *path, const char *text)
{
    WV_AUTO(wv_fd_drop) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

int wv_user_has_ranges(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long inside, outside, count;
    unsigned long end = WV_RANGE_FIRST + (unsigned long)WV_RANGES * WV_RANGE_SIZE;
    int all = 0;

    if (map == NULL)
        return 0;
    while (!all && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
        all = inside <= WV_RANGE_FIRST && inside + count >= end;
    fclose(map);
    return all;
}

/* --- subordinate ids --------------------------------------------------------- */

#define LINE_ROOM 256

/* Lines are "name-or-uid:first:count"; the first part is left in who. */
static int next_line(FILE *file, char who[LINE_ROOM], unsigned long *first,
                     unsigned long *count)
{
    while (fgets(who, LINE_ROOM, file) != NULL) {
        char *colon = strchr(who, ':');

        if (colon == NULL || sscanf(colon + 1, "%lu:%lu", first, count) != 2)
            continue;
        *colon = '\0';
        return 1;
    }
    return 0;
}

void wv_user_mark_taken(uint8_t taken[WV_RANGES])
{
    static const char *const files[] = {"/etc/subuid", "/etc/subgid"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "re");
        unsigned long first, count;
        char who[LINE_ROOM];

        while (file != NULL && next_line(file, who, &first, &count))
            for (unsigned long n = 0; n < WV_RANGES; n++) {
                unsigned long base = WV_RANGE_FIRST + n * WV_RANGE_SIZE;

                if (first < base + WV_RANGE_SIZE && first + count > base)
                    taken[n] = 1;
            }
        if (file != NULL)
            fclose(file);
    }
}

static void find_sub(const char *path, uid_t uid, uint32_t *first, uint32_t *count)
{
    FILE *file = fopen(path, "re");
    struct passwd *entry = getpwuid(uid);
    unsigned long begin, n;
    char who[LINE_ROOM], number[16];

    *first = *count = 0;
    snprintf(number, sizeof number, "%u", (unsigned)uid);
    while (file != NULL && *count == 0 && next_line(file, who, &begin, &n))
        if (strcmp(who, number) == 0 ||
            (entry != NULL && strcmp(who, entry->pw_name) == 0)) {
            *first = (uint32_t)begin;
            *count = (uint32_t)n;
        }
    if (file != NULL)
        fclose(file);
}

void wv_user_subids(uid_t uid, struct wv_subids *ids)
{
    find_sub("/etc/subuid", uid, &ids->uid, &ids->uids);
    find_sub("/etc/subgid", uid, &ids->gid, &ids->gids);
}

/* --- maps -------------------------------------------------------------------- */

static int write_map(pid_t pid, const char *file, uint32_t base, uint32_t count,
                     struct wv_err *err)
{
    char path[64], text[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    snprintf(text, sizeof text, "0 %u %u\n", base, count);
    if (write_file(path, text) < 0)
        return wv_fail_errno(err, "user", "writing %s", file);
    return 0;
}

int wv_user_map(pid_t pid, uint32_t base, uint32_t count, struct wv_err *err)
{
    int rc = write_map(pid, "uid_map", base, count, err);

    return rc < 0 ? rc : write_map(pid, "gid_map", base, count, err);
}

/* newuidmap and newgidmap: the only setuid programs that are ever run, once, at start.
 * */
static int run_mapper(const char *program, pid_t pid, uint32_t own, uint32_t sub,
                      uint32_t count)
{
    char numbers[4][16];
    char *argv[9];
    char *envp[] = {NULL};
    pid_t child;
    int status;

    snprintf(numbers[0], sizeof numbers[0], "%d", (int)pid);
    snprintf(numbers[1], sizeof numbers[1], "%u", own);
    snprintf(numbers[2], sizeof numbers[2], "%u", sub);
    snprintf(numbers[3], sizeof numbers[3], "%u", count);
    argv[0] = (char *)(size_t)program;
    argv[1] = numbers[0];
    argv[2] = (char *)(size_t) "0";
    argv[3] = numbers[1];
    argv[4] = argv[5] = (char *)(size_t) "1";
    argv[6] = numbers[2];
    argv[7] = numbers[3];
    argv[8] = NULL;
    child = fork();
    if (child == 0) {
        execve(program, argv, envp);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int wv_user_map_own(pid_t pid, const struct wv_subids *ids, struct wv_err *err)
{
    uint32_t uid = (uint32_t)geteuid(), gid = (uint32_t)getegid();
    char path[64];
    int rc;

    if (ids->uids >= WV_RANGE_SIZE && ids->gids >= WV_RANGE_SIZE &&
        run_mapper("/usr/bin/newuidmap", pid, uid, ids->uid, WV_RANGE_SIZE) == 0) {
        if (run_mapper("/usr/bin/newgidmap", pid, gid, ids->gid, WV_RANGE_SIZE) == 0)
            return 1 + (int)WV_RANGE_SIZE;
        return wv_fail(err, WV_EUNAVAILABLE, "user",
                       "newgidmap refused what newuidmap did");
    }
    snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
    if (write_file(path, "deny") < 0 && errno != ENOENT)
        return wv_fail_errno(err, "user", "writing setgroups");
    rc = write_map(pid, "uid_map", uid, 1, err);
    if (rc == 0)
        rc = write_map(pid, "gid_map", gid, 1, err);
    return rc < 0 ? rc : 1;
}

/* --- a namespace of a range -------------------------------------------------- */

/* Zero namespaces is a second lock beside the system call filter: it also holds for
 * whoever joins later. Missing names are older kernels without that object. */
static int write_limits(struct wv_err *err)
{
    static const struct {
        const char *name, *value;
    } limits[] = {
        {"max_inotify_instances", "64"   },
        {"max_inotify_watches",   "65536"},
        {"max_fanotify_groups",   "0"    },
        {"max_fanotify_marks",    "0"    },
        {"max_user_namespaces",   "0"    },
        {"max_mnt_namespaces",    "0"    },
        {"max_pid_namespaces",    "0"    },
        {"max_net_namespaces",    "0"    },
        {"max_ipc_namespaces",    "0"    },
        {"max_uts_namespaces",    "0"    },
        {"max_cgroup_namespaces", "0"    },
        {"max_time_namespaces",   "0"    },
    };
    WV_AUTO(wv_fd_drop)
    int dir = open("/proc/sys/user", O_PATH | O_CLOEXEC | O_DIRECTORY);

    if (dir < 0)
        return wv_fail_errno(err, "user", "/proc/sys/user");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        WV_AUTO(wv_fd_drop)
        int fd = openat(dir, limits[i].name, O_WRONLY | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || write(fd, limits[i].value, strlen(limits[i].value)) < 0)
            return wv_fail_errno(err, "user", "limiting %s", limits[i].name);
    }
    return 0;
}

int wv_user_enter(uint32_t base, struct wv_err *err)
{
    /* Changing the uid must not cost the capabilities: where unprivileged user
     * namespaces are restricted, making one needs them. The C library's wrappers would
     * signal other threads; there are none. */
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
        return wv_fail_errno(err, "user", "securebits");
    if (syscall(SYS_setresgid, base, base, base) < 0 ||
        syscall(SYS_setresuid, base, base, base) < 0)
        return wv_fail_errno(err, "user", "becoming %u", base);
    if (unshare(CLONE_NEWUSER) < 0)
        return wv_fail_errno(err, "user", "a user namespace");
    /* Where the maker of the maps is not the host's root, it can only write them while
     * this process counts as an ordinary one. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return write_limits(err);
}
