/* put.c - a file being written
 *
 * SPDX-License-Identifier: MIT */
#include "guest/put.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#define NOREPLACE 1u /* RENAME_NOREPLACE */
#define ATTEMPTS 16  /* while somebody else makes and removes the same file */

static int is_atomic(const struct wv_put *put)
{
    return (put->flags & WV_PUT_ATOMIC) != 0 && (put->flags & WV_PUT_APPEND) == 0;
}

/* What is at the target now: 1 and *st, 0: nothing, -1: failed. */
static int look(const struct wv_put *put, struct stat *st)
{
    if (fstatat(put->place.dir, put->place.name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : -1;
}

/* Is it as the caller expects? st NULL: it is absent. */
static int check_version(const struct wv_put *put, struct wv_request *req,
                         const struct stat *st)
{
    char version[WV_VERSION_ROOM] = "";

    if ((put->flags & WV_PUT_IF_VERSION) == 0)
        return 0;
    if (st != NULL)
        wv_version_of(st, version);
    return strcmp(version, put->version) == 0 ? 0 : wv_request_conflict(req, version);
}

/* --- atomic --------------------------------------------------------------------- */

/* May the file be written? A hint: the rename does not depend on it. */
static int check_writable(const struct wv_put *put)
{
    return syscall(SYS_faccessat2, put->place.dir, put->place.name, W_OK,
                   AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 &&
                   (errno == EACCES || errno == EROFS)
               ? -1
               : 0;
}

static void choose_temp(struct wv_put *put)
{
    uint64_t number = 0;

    /* Only in a young kernel's first moments is there none, and then EEXIST tells. */
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        number = (uint64_t)(uintptr_t)put ^ (uint64_t)getpid();
    wv_temp_name(put->temp, number);
}

static int open_temp(struct wv_put *put)
{
    put->fd = openat(put->place.dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (put->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return -1;
    choose_temp(put);
    put->fd = openat(put->place.dir, put->temp,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (put->fd < 0)
        put->temp[0] = '\0';
    return put->fd < 0 ? -1 : 0;
}

static int open_atomic(struct wv_put *put, struct wv_request *req)
{
    struct stat st;
    int there = look(put, &st);

    if (there < 0)
        return wv_request_errno(req, "path");
    if (there && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return wv_request_errno(req, "path");
    }
    if (check_version(put, req, there ? &st : NULL) < 0)
        return -1;
    if ((there && check_writable(put) < 0) || open_temp(put) < 0)
        return wv_request_errno(req, "path");
    return 0;
}

/* Mode and owner of the finished file; st NULL: nothing is replaced. */
static int dress(const struct wv_put *put, const struct stat *st)
{
    mode_t mode = st != NULL ? st->st_mode & 07777 : 0644;
    struct stat own;

    if ((put->flags & WV_PUT_MODE) != 0)
        mode = put->mode & 07777;
    if (put->owner != (uid_t)-1) {
        if (fchown(put->fd, put->owner, put->group) < 0)
            return -1;
    } else if (st != NULL && fstat(put->fd, &own) == 0 &&
               (own.st_uid != st->st_uid || own.st_gid != st->st_gid) &&
               fchown(put->fd, st->st_uid, st->st_gid) < 0) {
        /* It becomes the user's own. Then it must not run as somebody else. */
        if (fchown(put->fd, (uid_t)-1, st->st_gid) < 0)
            mode &= ~(mode_t)S_ISGID;
        mode &= ~(mode_t)S_ISUID;
    }
    return fchmod(put->fd, mode);
}

/* Give fd a name in the directory. */
static int link_as(const struct wv_put *put, const char *name)
{
    char link[32];

    snprintf(link, sizeof link, "/proc/self/fd/%d", put->fd);
    return linkat(AT_FDCWD, link, put->place.dir, name, AT_SYMLINK_FOLLOW);
}

/* To the target's name, which must be free. */
static int appear(struct wv_put *put)
{
    int dir = put->place.dir;

    if (put->temp[0] == '\0')
        return link_as(put, put->place.name);
    if (syscall(SYS_renameat2, dir, put->temp, dir, put->place.name, NOREPLACE) == 0) {
        put->temp[0] = '\0';
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* Then by a second name; abort removes the first. */
    return linkat(dir, put->temp, dir, put->place.name, 0);
}

static int replace(struct wv_put *put)
{
    int dir = put->place.dir;

    if (put->temp[0] == '\0') {
        choose_temp(put);
        if (link_as(put, put->temp) < 0) {
            put->temp[0] = '\0';
            return -1;
        }
    }
    if (renameat(dir, put->temp, dir, put->place.name) < 0)
        return -1;
    put->temp[0] = '\0';
    return 0;
}

static int commit_atomic(struct wv_put *put, struct wv_request *req)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct stat st;
        int there = look(put, &st);

        if (there < 0 || dress(put, there ? &st : NULL) < 0)
            return wv_request_errno(req, "path");
        if (check_version(put, req, there ? &st : NULL) < 0)
            return -1;
        if ((there ? replace(put) : appear(put)) == 0)
            return 0;
        if (there || errno != EEXIST)
            break;
    }
    return wv_request_errno(req, "path");
}

/* --- in place ------------------------------------------------------------------- */

/* Open what is there: 1, 0: nothing is there, -1: failed. */
static int open_old(struct wv_put *put, struct wv_request *req)
{
    int append = (put->flags & WV_PUT_APPEND) != 0 ? O_APPEND : 0;
    WV_AUTO(wv_fd_drop) int fd = -1;
    struct stat st;

    fd = openat(put->place.dir, put->place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || wv_resolve_regular(fd, &st) < 0)
        return wv_request_errno(req, "path");
    if (check_version(put, req, &st) < 0)
        return -1;
    put->fd = wv_resolve_again(fd, O_WRONLY | append);
    return put->fd < 0 ? wv_request_errno(req, "path") : 1;
}

static int open_new(struct wv_put *put, struct wv_request *req)
{
    int flags = (put->flags & WV_PUT_APPEND) != 0 ? O_APPEND : 0;

    if ((put->flags & WV_PUT_IF_VERSION) != 0 && check_version(put, req, NULL) < 0)
        return -1;
    flags |= O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    put->fd = openat(put->place.dir, put->place.name, flags, 0644);
    if (put->fd < 0)
        return errno == EEXIST ? 0 : wv_request_errno(req, "path");
    put->created = put->emptied = 1;
    return 1;
}

static int open_in_place(struct wv_put *put, struct wv_request *req)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int status = open_old(put, req);

        if (status == 0)
            status = open_new(put, req);
        if (status != 0)
            return status < 0 ? -1 : 0;
    }
    errno = EBUSY;
    return wv_request_errno(req, "path");
}

static int make_empty(struct wv_put *put)
{
    if (put->emptied || is_atomic(put) || (put->flags & WV_PUT_APPEND) != 0)
        return 0;
    put->emptied = 1;
    return ftruncate(put->fd, 0);
}

static int commit_in_place(struct wv_put *put, struct wv_request *req)
{
    if (make_empty(put) < 0)
        return wv_request_errno(req, "path");
    if (put->owner != (uid_t)-1 && fchown(put->fd, put->owner, put->group) < 0)
        return wv_request_errno(req, "owner");
    if ((put->flags & WV_PUT_MODE) != 0 && fchmod(put->fd, put->mode & 07777) < 0)
        return wv_request_errno(req, "mode");
    put->created = 0;
    return 0;
}

/* --- both ----------------------------------------------------------------------- */

static int read_options(struct wv_put *put, struct wv_request *req,
                        const struct wv_msg_PUT *msg)
{
    struct wv_user owner;
    struct wv_err err;
    char name[65];

    put->flags = msg->flags;
    put->mode = msg->mode;
    if (wv_str_copy(msg->version, put->version, sizeof put->version) < 0)
        return wv_request_fail(req, WV_EINVALID, "version", "", "not a version");
    if (msg->owner.len == 0)
        return 0;
    if (wv_str_copy(msg->owner, name, sizeof name) < 0 ||
        wv_user_find(name, &owner, &err) < 0)
        return wv_request_fail(req, WV_ENOT_FOUND, "owner", "", "no such user");
    put->owner = owner.uid;
    put->group = owner.gid;
    return 0;
}

int wv_put_open(struct wv_put *put, struct wv_request *req,
                const struct wv_msg_PUT *msg)
{
    *put = (struct wv_put){.place.dir = -1, .fd = -1, .owner = (uid_t)-1};
    if (read_options(put, req, msg) < 0)
        return -1;
    if (req->path.dir) {
        errno = EISDIR;
        return wv_request_errno(req, "path");
    }
    if (wv_place_find(&put->place, &req->path, put->flags & WV_PUT_PARENTS) < 0 ||
        wv_place_follow(&put->place) < 0)
        return wv_request_errno(req, "path");
    return is_atomic(put) ? open_atomic(put, req) : open_in_place(put, req);
}

int wv_put_write(struct wv_put *put, struct wv_request *req, struct wv_str data)
{
    int atomic = is_atomic(put), status;

    /* With our own rights it would leave the set-id bits of a file on. */
    if (!atomic)
        wv_user_assume(&req->user);
    status = make_empty(put) < 0 || wv_fd_write_all(put->fd, data.ptr, data.len) < 0
                 ? wv_request_errno(req, "path")
                 : 0;
    if (!atomic)
        wv_user_restore();
    return status;
}

void wv_put_commit(struct wv_put *put, struct wv_request *req)
{
    struct stat st;

    if ((is_atomic(put) ? commit_atomic(put, req) : commit_in_place(put, req)) == 0) {
        put->place.made = 0;
        if (fstat(put->fd, &st) < 0)
            wv_request_errno(req, "path");
        else
            wv_request_stat(req, WV_MSG_STATED, &st, req->path.text, wv_str(""));
    }
    wv_put_abort(put, req);
}

/* The file at the target, which this put made: remove it. */
static void take_back(const struct wv_put *put)
{
    struct stat st, now;

    if (fstat(put->fd, &st) == 0 && look(put, &now) == 1 && st.st_ino == now.st_ino &&
        st.st_dev == now.st_dev)
        unlinkat(put->place.dir, put->place.name, 0);
}

void wv_put_abort(struct wv_put *put, const struct wv_request *req)
{
    if (put->temp[0] != '\0')
        unlinkat(put->place.dir, put->temp, 0);
    if (put->created)
        take_back(put);
    wv_fd_drop(&put->fd);
    wv_place_undo(&put->place, &req->path);
    wv_place_drop(&put->place);
}

int wv_put_must_sync(const struct wv_put *put)
{
    struct statfs fs;

    if ((put->flags & WV_PUT_SYNC) == 0 || fstatfs(put->fd, &fs) < 0)
        return 0;
    return (uint32_t)fs.f_type != TMPFS_MAGIC && (uint32_t)fs.f_type != RAMFS_MAGIC;
}
