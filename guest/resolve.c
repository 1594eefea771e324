/* resolve.c - from paths to descriptors
 *
 * SPDX-License-Identifier: MIT */
#include "guest/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#define LINKS_MAX 40 /* as the kernel */

static int open_how(int at, const char *path, int flags, uint64_t resolve)
{
    const struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, at, path, &how, sizeof how);
}

int wv_resolve(int at, const char *path, int flags)
{
    int fd = open_how(at, path, flags, 0);

    /* Without openat2 a magic link is followed; what it leads to is looked at later. */
    if (fd < 0 && errno == ENOSYS)
        fd = openat(at, path, flags | O_CLOEXEC);
    return fd;
}

int wv_resolve_child(int dir, const char *name, int flags)
{
    int fd = open_how(dir, name, flags | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV);
    struct stat above, st;

    if (fd >= 0 || errno != ENOSYS)
        return fd;
    fd = openat(dir, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fd;
    if (fstat(dir, &above) == 0 && fstat(fd, &st) == 0 && above.st_dev == st.st_dev)
        return fd;
    close(fd);
    errno = EXDEV;
    return -1;
}

int wv_resolve_again(int fd, int flags)
{
    char link[32];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return open(link, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int wv_resolve_is_kernel(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return 1;
    switch ((uint32_t)fs.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
        return 1;
    default:
        return 0;
    }
}

int wv_resolve_regular(int fd, struct stat *st)
{
    if (fstat(fd, st) < 0)
        return -1;
    if (S_ISREG(st->st_mode) && !wv_resolve_is_kernel(fd))
        return 0;
    if (S_ISREG(st->st_mode))
        errno = EOPNOTSUPP;
    else
        errno = S_ISDIR(st->st_mode) ? EISDIR : EINVAL;
    return -1;
}

/* --- places --------------------------------------------------------------------- */

/* Go from *dir to its directory `name`, made if it is missing. 1: it was. */
static int step(int *dir, const char *name)
{
    int fd = wv_resolve(*dir, name, O_PATH | O_DIRECTORY), made = 0;

    if (fd < 0 && errno == ENOENT) {
        made = mkdirat(*dir, name, 0755) == 0;
        if (!made && errno != EEXIST)
            return -1;
        fd = wv_resolve(*dir, name, O_PATH | O_DIRECTORY);
    }
    if (fd < 0)
        return -1;
    close(*dir);
    *dir = fd;
    return made;
}

/* Walk the first len bytes of path, making what is missing. */
static int make_dirs(struct wv_place *place, const struct wv_path *path, size_t len)
{
    WV_AUTO(wv_fd_drop) int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[256];
    size_t n;

    for (size_t at = 1; dir >= 0 && at < len; at += n + 1) {
        int made;

        n = strcspn(path->text + at, "/");
        if (n >= sizeof name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path->text + at, n);
        name[n] = '\0';
        made = step(&dir, name);
        if (made < 0)
            return -1;
        if (made && place->made == 0)
            place->made = (uint16_t)(at + n);
    }
    return wv_fd_take(&dir);
}

int wv_place_find(struct wv_place *place, const struct wv_path *path, int parents)
{
    const char *name = wv_path_name(path);
    size_t len = (size_t)(name - path->text); /* with the slash */
    char dir[WV_PATH_ROOM];

    *place = (struct wv_place){.dir = -1};
    if (strlen(name) >= sizeof place->name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (name[0] == '\0' || strcmp(name, "..") == 0) {
        errno = name[0] == '\0' ? EISDIR : EINVAL;
        return -1;
    }
    strcpy(place->name, name);
    memcpy(dir, path->text, len);
    dir[len] = '\0';
    place->dir = wv_resolve(AT_FDCWD, dir, O_PATH | O_DIRECTORY);
    if (place->dir < 0 && errno == ENOENT && parents) {
        place->dir = make_dirs(place, path, len);
        if (place->dir < 0) {
            int sys = errno;

            wv_place_undo(place, path);
            errno = sys;
        }
    }
    return place->dir < 0 ? -1 : 0;
}

void wv_place_undo(struct wv_place *place, const struct wv_path *path)
{
    struct wv_path at = *path;

    /* With ".." behind it, the parts are not one below the other. */
    if (place->made == 0 || strstr(path->text + place->made, "/..") != NULL)
        return;
    for (;;) {
        at.text[strlen(at.text) - strlen(wv_path_name(&at)) - 1] = '\0';
        if (strlen(at.text) < place->made)
            break;
        unlinkat(AT_FDCWD, at.text, AT_REMOVEDIR);
    }
    place->made = 0;
}

/* In a directory like /tmp, a link of somebody else's is not to be trusted: the rule of
 * the kernel's protected_symlinks, which cannot see that we follow one. */
static int may_follow(int dir, const char *name)
{
    struct stat above, link;

    if (fstat(dir, &above) < 0 || fstatat(dir, name, &link, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if ((above.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
        link.st_uid == (uid_t)setfsuid((uid_t)-1) || link.st_uid == above.st_uid)
        return 0;
    errno = EACCES;
    return -1;
}

/* Go to target, as seen from the place's directory. */
static int go(struct wv_place *place, char *target)
{
    char *slash = strrchr(target, '/');
    const char *name = slash != NULL ? slash + 1 : target;
    size_t len = strlen(name);

    if (len == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        errno = EISDIR;
        return -1;
    }
    if (len >= sizeof place->name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(place->name, name, len + 1);
    if (slash != NULL) {
        int dir;

        slash[1] = '\0';
        dir = wv_resolve(place->dir, target, O_PATH | O_DIRECTORY);
        if (dir < 0)
            return -1;
        close(place->dir);
        place->dir = dir;
    }
    return 0;
}

int wv_place_follow(struct wv_place *place)
{
    char target[WV_PATH_ROOM];

    for (int links = 0; links < LINKS_MAX; links++) {
        ssize_t n;

        if (wv_resolve_is_kernel(place->dir)) {
            errno = EOPNOTSUPP;
            return -1;
        }
        n = readlinkat(place->dir, place->name, target, sizeof target);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : -1;
        if (n == sizeof target) {
            errno = ENAMETOOLONG;
            return -1;
        }
        target[n] = '\0';
        if (may_follow(place->dir, place->name) < 0 || go(place, target) < 0)
            return -1;
    }
    errno = ELOOP;
    return -1;
}

int wv_place_is_mount(const struct wv_place *place)
{
    WV_AUTO(wv_fd_drop) int fd = wv_resolve_child(place->dir, place->name, O_PATH);

    return fd < 0 && errno == EXDEV;
}

void wv_place_drop(struct wv_place *place)
{
    wv_fd_drop(&place->dir);
}
