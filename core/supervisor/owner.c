/* owner.c - the name under which everything stands that outlives a process
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* A directory that is nobody's but ours. */
static int private_dir(int at, const char *path, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int fd = -1;
    struct stat seen;

    if (mkdirat(at, path, 0700) < 0 && errno != EEXIST)
        return wv_fail_errno(err, "owner", "making %s", path);
    fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &seen) < 0)
        return wv_fail_errno(err, "owner", "opening %s", path);
    if (seen.st_uid != geteuid() || (seen.st_mode & 022) != 0)
        return wv_fail(err, WV_EDENIED, "owner", "others than uid %u may write to %s",
                       (unsigned)geteuid(), path);
    if ((seen.st_mode & 077) != 0 && fchmod(fd, 0700) < 0)
        return wv_fail_errno(err, "owner", "making %s private", path);
    return wv_fd_take(&fd);
}

static int open_run(int root, struct wv_err *err)
{
    char path[64];
    struct stat seen;
    unsigned uid = (unsigned)geteuid();

    if (root)
        return private_dir(AT_FDCWD, "/run/wovyr", err);
    snprintf(path, sizeof path, "/run/user/%u", uid);
    if (lstat(path, &seen) == 0 && S_ISDIR(seen.st_mode) && seen.st_uid == uid)
        snprintf(path, sizeof path, "/run/user/%u/wovyr", uid);
    else
        snprintf(path, sizeof path, "/tmp/wovyr-%u", uid);
    return private_dir(AT_FDCWD, path, err);
}

static int random_id(char id[WV_OWNER_LEN + 1], struct wv_err *err)
{
    unsigned char bytes[WV_OWNER_LEN / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return wv_fail_errno(err, "owner", "random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int wv_owner_guard(const struct wv_owner *owner, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop)
    int fd =
        openat(owner->run, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return wv_fail_errno(err, "owner", "taking the lock of the run directory");
    return wv_fd_take(&fd);
}

int wv_owner_init(struct wv_owner *owner, int root, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int guard = -1;
    WV_AUTO(wv_fd_drop) int dir = -1;
    int rc;

    *owner = (struct wv_owner){.run = -1, .uid = -1, .lock = -1};
    if ((rc = random_id(owner->id, err)) < 0 || (rc = open_run(root, err)) < 0)
        return rc;
    owner->run = rc;
    if (root && (owner->uid = private_dir(owner->run, "uid", err)) < 0)
        return owner->uid;
    if ((guard = wv_owner_guard(owner, err)) < 0)
        return guard;
    if ((dir = private_dir(owner->run, owner->id, err)) < 0)
        return dir;
    owner->lock = openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (owner->lock < 0 || flock(owner->lock, LOCK_EX | LOCK_NB) < 0) {
        rc = wv_fail_errno(err, "owner", "taking our own lock");
        wv_owner_remove(owner, owner->id);
        return rc;
    }
    return 0;
}

void wv_owner_leave(struct wv_owner *owner)
{
    wv_fd_drop(&owner->lock);
}

int wv_owner_is_id(const char *name)
{
    return strlen(name) == WV_OWNER_LEN &&
           strspn(name, "0123456789abcdef") == WV_OWNER_LEN;
}

int wv_owner_claim(const struct wv_owner *owner, const char *id, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int guard = wv_owner_guard(owner, err);
    WV_AUTO(wv_fd_drop) int fd = -1;
    char path[WV_OWNER_LEN + 8];

    if (guard < 0)
        return guard;
    snprintf(path, sizeof path, "%s/lock", id);
    fd = openat(owner->run, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        /* Its maker died before there was a lock; nothing can bear its name yet. */
        unlinkat(owner->run, id, AT_REMOVEDIR);
        return wv_fail(err, WV_ENOT_FOUND, "owner", "%s is gone", id);
    }
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return wv_fail_errno(err, "owner", "claiming %s", id);
    return wv_fd_take(&fd);
}

/* Files first: sockets and external runtimes' state may lie there, some of them deep.
 * */
static void remove_tree(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (dir == NULL) {
        wv_fd_drop(&fd);
        unlinkat(at, name, 0);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR)
            remove_tree(fd, entry->d_name);
    }
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}

void wv_owner_remove(const struct wv_owner *owner, const char *id)
{
    remove_tree(owner->run, id);
}

/* --- leases ------------------------------------------------------------------ */

int wv_lease_take(const struct wv_owner *owner, uint32_t n, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int fd = -1;
    struct stat seen;
    char name[16];

    snprintf(name, sizeof name, "%u", n);
    fd = openat(owner->uid, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? WV_EAGAIN
                               : wv_fail_errno(err, "lease", "making %s", name);
    /* A sweeper may have taken the new file for an orphan, and removed it. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &seen) < 0 || seen.st_nlink == 0)
        return WV_EAGAIN;
    if (write(fd, owner->id, WV_OWNER_LEN) != WV_OWNER_LEN) {
        unlinkat(owner->uid, name, 0);
        return wv_fail_errno(err, "lease", "writing %s", name);
    }
    return wv_fd_take(&fd);
}

void wv_lease_drop(const struct wv_owner *owner, uint32_t n)
{
    char name[16];

    snprintf(name, sizeof name, "%u", n);
    unlinkat(owner->uid, name, 0);
}

static int is_orphan(const struct wv_owner *owner, int fd, const char *named)
{
    struct stat seen;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return 0;
    return !wv_owner_is_id(named) ||
           (fstatat(owner->run, named, &seen, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno == ENOENT);
}

void wv_lease_sweep(const struct wv_owner *owner, const char *id)
{
    int fd = owner->uid < 0
                 ? -1
                 : openat(owner->uid, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (dir == NULL) {
        wv_fd_drop(&fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        WV_AUTO(wv_fd_drop)
        int lease = openat(owner->uid, entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        char named[WV_OWNER_LEN + 1] = "";

        if (lease < 0 || read(lease, named, WV_OWNER_LEN) < 0)
            continue;
        if ((id != NULL && strcmp(named, id) == 0) || is_orphan(owner, lease, named))
            unlinkat(owner->uid, entry->d_name, 0);
    }
    closedir(dir);
}
