/* file.c - a descriptor that a guest handed over, read by the host
 *
 * SPDX-License-Identifier: MIT */
#include "client/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#define CHUNK 262144u

/* Served by the kernel alone: no process of anybody can make a read wait. */
static const uint32_t allowed[] = {
    0x01021994, /* tmpfs */
    0x794c7630, /* overlayfs */
    0x0000ef53, /* ext2, ext3, ext4 */
    0x58465342, /* xfs */
    0x9123683e, /* btrfs */
    0xf2f52010, /* f2fs */
    0xe0f5e1e2, /* erofs */
    0x73717368, /* squashfs */
    0x2fc12fc1, /* zfs */
};

int wv_file_check(int fd, struct wv_err *err)
{
    struct statfs fs;
    struct stat st;

    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return wv_fail_errno(err, "file", "looking at a passed descriptor");
    if (!S_ISREG(st.st_mode))
        return wv_fail(err, WV_EINVALID, "file", "not a regular file");
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        if ((uint32_t)fs.f_type == allowed[i])
            return 0;
    return wv_fail(err, WV_EUNSUPPORTED, "file",
                   "file system 0x%x is not one that is read by descriptor",
                   (uint32_t)fs.f_type);
}

int64_t wv_file_size(int fd, struct wv_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return wv_fail_errno(err, "file", "fstat");
    return st.st_size;
}

ssize_t wv_file_read(int fd, uint64_t offset, void *out, size_t n, struct wv_err *err)
{
    size_t got = 0;

    while (got < n) {
        ssize_t rc;

        if (offset + got > INT64_MAX)
            break;
        rc = pread(fd, (char *)out + got, n - got, (off_t)(offset + got));
        if (rc < 0 && errno == EINTR)
            continue;
        if (rc < 0)
            return wv_fail_errno(err, "file", "reading at %llu",
                                 (unsigned long long)(offset + got));
        if (rc == 0)
            break;
        got += (size_t)rc;
    }
    return (ssize_t)got;
}

static void drop_bytes(char **data)
{
    free(*data);
}

static int copy(int from, int to, uint64_t max, struct wv_err *err)
{
    WV_AUTO(drop_bytes) char *chunk = malloc(CHUNK);
    uint64_t offset = 0;
    ssize_t n;

    if (chunk == NULL)
        return wv_fail(err, WV_ELIMIT, "save", "no memory");
    while ((n = wv_file_read(from, offset, chunk, CHUNK, err)) > 0) {
        offset += (uint64_t)n;
        if (offset > max)
            return wv_fail(err, WV_ELIMIT, "save", "more than %llu bytes",
                           (unsigned long long)max);
        if (wv_fd_write_all(to, chunk, (size_t)n) < 0)
            return wv_fail_errno(err, "save", "writing");
    }
    return n < 0 ? (int)n : 0;
}

/* Open path's directory and point *name at its last part. */
static int open_parent(const char *path, const char **name, struct wv_err *err)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;
    char dir[PATH_MAX];
    int fd;

    *name = slash != NULL ? slash + 1 : path;
    if (**name == '\0' || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0 ||
        len >= sizeof dir)
        return wv_fail(err, WV_EINVALID, "save", "%s is not a file name", path);
    memcpy(dir, path, len);
    dir[len] = '\0';
    if (slash == path)
        strcpy(dir, "/");
    else if (slash == NULL)
        strcpy(dir, ".");
    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? wv_fail_errno(err, "save", "opening directory %s", dir) : fd;
}

/* What a rename would replace must be a plain file: not a link (whoever made it meant
 * another place) and not a device. */
static int check_target(int dir, const char *name, struct wv_err *err)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : wv_fail_errno(err, "save", "looking at %s", name);
    if (!S_ISREG(st.st_mode))
        return wv_fail(err, WV_ECONFLICT, "save", "%s is there and not a regular file",
                       name);
    return 0;
}

int wv_file_save(int from, const char *path, uint64_t max, struct wv_err *err)
{
    const char *name = NULL;
    WV_AUTO(wv_fd_drop) int dir = open_parent(path, &name, err);
    WV_AUTO(wv_fd_drop) int to = -1;
    char temporary[32];
    uint64_t number = 0;
    int rc;

    if (dir < 0)
        return dir;
    if ((rc = check_target(dir, name, err)) < 0)
        return rc;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        return wv_fail_errno(err, "save", "getrandom");
    snprintf(temporary, sizeof temporary, ".wovyr-%016llx", (unsigned long long)number);
    to = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                0666);
    if (to < 0)
        return wv_fail_errno(err, "save", "making a file beside %s", path);
    rc = copy(from, to, max, err);
    if (rc == 0 && renameat(dir, temporary, dir, name) < 0)
        rc = wv_fail_errno(err, "save", "renaming to %s", path);
    if (rc < 0)
        unlinkat(dir, temporary, 0);
    return rc;
}
