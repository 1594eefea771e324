/* user.c - names of this sandbox's own passwd and group files
 *
 * SPDX-License-Identifier: MIT */
#include "guest/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define LINE_BYTES 4095  /* of a line; a longer one ends the file */
#define FILE_MAX 1048576 /* what is behind it in passwd or group is not seen */
#define NAMES 16         /* remembered answers of wv_user_name and wv_group_name */
#define NAME_SECONDS 1   /* for how long */

/* One answer. A listing asks for the same few ids a thousand times. */
struct name {
    uint32_t id;
    time_t until;
    char text[64];
};

/* A file of lines, read in pieces: an agent is small, and so are these files. */
struct lines {
    int fd;
    size_t at, len, seen;
    char text[LINE_BYTES + 1];
};

static void lines_drop(struct lines *lines)
{
    wv_fd_drop(&lines->fd);
}

/* NONBLOCK and the check because the guest may have put a FIFO there. */
static void lines_open(struct lines *lines, const char *path)
{
    struct stat st;

    lines->at = lines->len = lines->seen = 0;
    lines->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (lines->fd >= 0 && (fstat(lines->fd, &st) < 0 || !S_ISREG(st.st_mode)))
        wv_fd_drop(&lines->fd);
}

/* More text behind what is left. 0: the end, or more than is read of any file. */
static int lines_more(struct lines *lines)
{
    ssize_t n;

    memmove(lines->text, lines->text + lines->at, lines->len - lines->at);
    lines->len -= lines->at;
    lines->at = 0;
    if (lines->fd < 0 || lines->len == LINE_BYTES || lines->seen >= FILE_MAX)
        return 0;
    n = read(lines->fd, lines->text + lines->len, LINE_BYTES - lines->len);
    if (n <= 0)
        return 0;
    lines->len += (size_t)n;
    lines->seen += (size_t)n;
    return 1;
}

/* Cut the next line into its ':' fields (missing ones are ""); 0 at the end. */
static int next_line(struct lines *lines, char *fields[], int n)
{
    char *line, *end, *empty;

    while ((end = memchr(lines->text + lines->at, '\n', lines->len - lines->at)) ==
           NULL)
        if (!lines_more(lines)) {
            end = lines->text + lines->len; /* the last one may lack its newline */
            break;
        }
    if (lines->at == lines->len)
        return 0;
    line = lines->text + lines->at;
    lines->at = (size_t)(end - lines->text) + (end < lines->text + lines->len);
    *end = '\0';
    empty = end;
    for (int i = 0; i < n; i++) {
        fields[i] = strsep(&line, ":");
        if (fields[i] == NULL)
            fields[i] = empty;
    }
    return 1;
}

/* A decimal id, and nothing else; (uid_t)-1 is nobody. */
static int parse_id(const char *text, uint32_t *id)
{
    char *end;
    unsigned long v;

    if (*text < '0' || *text > '9' || strlen(text) > 10)
        return -1;
    v = strtoul(text, &end, 10);
    if (*end != '\0' || v >= UINT32_MAX)
        return -1;
    *id = (uint32_t)v;
    return 0;
}

static void copy(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from);
}

/* The passwd line of name, or of uid when name is NULL. */
static int find_passwd(const char *name, uid_t uid, struct wv_user *user)
{
    WV_AUTO(lines_drop) struct lines lines;
    uint32_t id, gid;
    char *f[7];

    lines_open(&lines, "/etc/passwd");
    while (next_line(&lines, f, 7)) {
        if (parse_id(f[2], &id) < 0 || parse_id(f[3], &gid) < 0 || f[0][0] == '\0' ||
            strlen(f[0]) >= sizeof user->name)
            continue;
        if (name != NULL ? strcmp(name, f[0]) != 0 : id != uid)
            continue;
        copy(user->name, sizeof user->name, f[0]);
        copy(user->home, sizeof user->home, f[5][0] == '/' ? f[5] : "/");
        copy(user->shell, sizeof user->shell, f[6][0] == '/' ? f[6] : "/bin/sh");
        user->uid = id;
        user->gid = gid;
        return 0;
    }
    return -1;
}

static void find_groups(struct wv_user *user)
{
    WV_AUTO(lines_drop) struct lines lines;
    uint32_t gid;
    char *f[4];

    lines_open(&lines, "/etc/group");
    user->groups[0] = user->gid;
    user->ngroups = 1;
    while (user->ngroups < WV_GROUPS_MAX && next_line(&lines, f, 4)) {
        char *members = f[3], *member;

        if (parse_id(f[2], &gid) < 0 || gid == user->gid)
            continue;
        while ((member = strsep(&members, ",")) != NULL)
            if (strcmp(member, user->name) == 0) {
                user->groups[user->ngroups++] = gid;
                break;
            }
    }
}

static int look_up(const char *name, struct wv_user *user, struct wv_err *err)
{
    uint32_t uid = 0;
    int found;

    memset(user, 0, sizeof *user);
    if (name[0] == '\0') {
        found = find_passwd("user", 0, user) == 0;
        name = "root";
    } else {
        found = find_passwd(name, 0, user) == 0;
    }
    /* Root needs no file, and a number needs no name. */
    if (!found && (strcmp(name, "root") == 0 || parse_id(name, &uid) == 0)) {
        found = 1;
        if (find_passwd(NULL, uid, user) < 0) {
            copy(user->name, sizeof user->name, name);
            copy(user->home, sizeof user->home, uid == 0 ? "/root" : "/");
            copy(user->shell, sizeof user->shell, "/bin/sh");
            user->uid = uid;
            user->gid = uid;
        }
    }
    if (!found) {
        int rc = wv_fail(err, WV_ENOT_FOUND, "user", "no user '%.64s'", name);

        if (err != NULL)
            copy(err->field, sizeof err->field, "user");
        return rc;
    }
    find_groups(user);
    return 0;
}

/* What tells one state of a file from another. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec modified, changed;
};

static void take_stamp(const char *path, struct stamp *stamp)
{
    struct stat st;

    memset(stamp, 0, sizeof *stamp);
    if (stat(path, &st) < 0)
        return;
    stamp->dev = st.st_dev;
    stamp->ino = st.st_ino;
    stamp->size = st.st_size;
    stamp->modified = st.st_mtim;
    stamp->changed = st.st_ctim;
}

/* The memories here are static because an agent has one /etc, and one thread. */
int wv_user_find(const char *name, struct wv_user *user, struct wv_err *err)
{
    static struct stamp known[2];
    static char known_name[64];
    static struct wv_user last;
    struct stamp now[2];
    int rc;

    take_stamp("/etc/passwd", &now[0]);
    take_stamp("/etc/group", &now[1]);
    if (last.ngroups > 0 && strcmp(known_name, name) == 0 &&
        memcmp(known, now, sizeof now) == 0) {
        *user = last;
        return 0;
    }
    last.ngroups = 0;
    rc = look_up(name, user, err);
    if (rc < 0 || strlen(name) >= sizeof known_name)
        return rc;
    last = *user;
    memcpy(known, now, sizeof now);
    copy(known_name, sizeof known_name, name);
    return 0;
}

/* The remembered slot of id; 1 when its text still holds. */
static int recall(struct name *names, uint32_t id, struct name **slot)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    *slot = &names[id % NAMES];
    if ((*slot)->until > now.tv_sec && (*slot)->id == id)
        return 1;
    (*slot)->id = id;
    (*slot)->until = now.tv_sec + NAME_SECONDS;
    snprintf((*slot)->text, sizeof(*slot)->text, "%u", id);
    return 0;
}

void wv_user_name(uid_t uid, char out[64])
{
    static struct name names[NAMES];
    struct name *slot;
    struct wv_user user;

    if (!recall(names, uid, &slot) && find_passwd(NULL, uid, &user) == 0)
        copy(slot->text, sizeof slot->text, user.name);
    copy(out, 64, slot->text);
}

void wv_group_name(gid_t gid, char out[64])
{
    static struct name names[NAMES];
    struct name *slot;

    if (!recall(names, gid, &slot)) {
        WV_AUTO(lines_drop) struct lines lines;
        uint32_t id;
        char *f[4];

        lines_open(&lines, "/etc/group");
        while (next_line(&lines, f, 4))
            if (parse_id(f[2], &id) == 0 && id == gid && f[0][0] != '\0') {
                copy(slot->text, sizeof slot->text, f[0]);
                break;
            }
    }
    copy(out, 64, slot->text);
}

/* With fsuid not 0 the kernel also takes the capabilities that override file
 * permissions from the effective set, and gives them back with 0. */
/* setfsuid(2) does not say that it failed, as it does for an id that is not mapped
 * here: ask what it is now, or the work would be done with our own rights. */
int wv_user_assume(const struct wv_user *user)
{
    syscall(SYS_setgroups, (size_t)user->ngroups, user->groups);
    setfsgid(user->gid);
    setfsuid(user->uid);
    if ((uid_t)setfsuid((uid_t)-1) == user->uid &&
        (gid_t)setfsgid((gid_t)-1) == user->gid)
        return 0;
    wv_user_restore();
    return WV_EDENIED;
}

/* A change of fsuid also clears PDEATHSIG and may make the process dumpable. */
void wv_user_restore(void)
{
    setfsuid(geteuid());
    setfsgid(getegid());
    syscall(SYS_setgroups, 0, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
}
