/* entry.c - requests about one entry: open, stat, mkdir, rename
 *
 * SPDX-License-Identifier: MIT */
#include "guest/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/resolve.h"

#define NOREPLACE 1u /* RENAME_NOREPLACE */
#define MODE_USUAL 0755

/* Open an object without access to it; a path with a slash behind is a directory's. */
static int open_path(struct wv_request *req, int nofollow)
{
    int flags =
        O_PATH | (req->path.dir ? O_DIRECTORY : 0) | (nofollow ? O_NOFOLLOW : 0);
    int fd = wv_resolve(AT_FDCWD, req->path.text, flags);

    if (fd < 0)
        wv_request_errno(req, "path");
    return fd;
}

static int answer_stat(struct wv_request *req, uint8_t type, int fd,
                       const struct stat *st, const char *path)
{
    char target[WV_PATH_ROOM];
    ssize_t n = 0;

    if (S_ISLNK(st->st_mode))
        n = readlinkat(fd, "", target, sizeof target);
    return wv_request_stat(req, type, st, path,
                           (struct wv_str){target, n > 0 ? (uint32_t)n : 0});
}

int wv_entry_open(struct wv_request *req)
{
    WV_AUTO(wv_fd_drop) int path = open_path(req, 0);
    WV_AUTO(wv_fd_drop) int fd = -1;
    struct stat st;

    if (path < 0)
        return -1;
    if (wv_resolve_regular(path, &st) == 0)
        fd = wv_resolve_again(path, O_RDONLY);
    else if (errno == EINVAL)
        return wv_request_fail(req, WV_EINVALID, "path", "not_regular",
                               "not a regular file");
    if (fd < 0)
        return wv_request_errno(req, "path");
    req->fd = wv_fd_take(&fd);
    return answer_stat(req, WV_MSG_FILE, path, &st, req->path.text);
}

int wv_entry_stat(struct wv_request *req, int follow)
{
    WV_AUTO(wv_fd_drop) int fd = open_path(req, !follow);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return wv_request_errno(req, "path");
    return answer_stat(req, WV_MSG_STATED, fd, &st, req->path.text);
}

/* --- mkdir ---------------------------------------------------------------------- */

/* Exactly that mode. mkdir takes no set-id bits, so these come afterwards. */
static int make_dir(const struct wv_place *place, mode_t mode)
{
    WV_AUTO(wv_fd_drop) int fd = -1;
    mode_t mask = umask(0);
    int status = mkdirat(place->dir, place->name, mode & 01777);

    umask(mask);
    if (status < 0 || (mode & 06000) == 0)
        return status;
    fd = wv_resolve_child(place->dir, place->name, O_RDONLY);
    return fd < 0 ? -1 : fchmod(fd, mode);
}

int wv_entry_mkdir(struct wv_request *req, const struct wv_msg_MKDIR *msg)
{
    WV_AUTO(wv_place_drop) struct wv_place place = {.dir = -1};
    mode_t mode = msg->mode != 0 ? msg->mode & 07777 : MODE_USUAL;

    if (wv_place_find(&place, &req->path, msg->parents) < 0) {
        /* The root and ".." are there, which is enough when parents are made. */
        if (place.dir >= 0 || (errno != EISDIR && errno != EINVAL))
            return wv_request_errno(req, "path");
    } else if (make_dir(&place, mode) == 0) {
        return wv_entry_stat(req, 0);
    } else if (errno != EEXIST) {
        return wv_request_errno(req, "path");
    }
    if (!msg->parents) {
        errno = EEXIST;
        return wv_request_errno(req, "path");
    }
    req->path.dir = 1;
    return wv_entry_stat(req, 1);
}

/* --- rename --------------------------------------------------------------------- */

static int check_guard(struct wv_request *req, const struct wv_msg_RENAME *msg,
                       const struct stat *st)
{
    char version[WV_VERSION_ROOM];

    wv_version_of(st, version);
    if (!msg->guarded || msg->version.len == 0 ||
        (msg->version.len == strlen(version) &&
         memcmp(msg->version.ptr, version, msg->version.len) == 0))
        return 0;
    return wv_request_conflict(req, version);
}

static int move(const struct wv_place *from, const struct wv_place *to, unsigned flags)
{
    int status =
        (int)syscall(SYS_renameat2, from->dir, from->name, to->dir, to->name, flags);

    if (status < 0 && errno == ENOSYS && flags == 0)
        status = renameat(from->dir, from->name, to->dir, to->name);
    return status;
}

/* Something is in the place that should be free. */
static int answer_taken(struct wv_request *req, const struct wv_place *to)
{
    char version[WV_VERSION_ROOM] = "";
    struct stat st;

    if (fstatat(to->dir, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        wv_version_of(&st, version);
    return wv_request_conflict(req, version);
}

static int read_target(struct wv_request *req, const struct wv_msg_RENAME *msg,
                       struct wv_path *path)
{
    struct wv_err err;

    if (msg->to.len == 0)
        return wv_request_fail(req, WV_EINVALID, "to", "", "no path to rename it to");
    if (wv_path_make(path, msg->to, msg->cwd, req->user.home, &err) < 0) {
        if (strcmp(err.field, "path") == 0)
            snprintf(err.field, sizeof err.field, "to");
        return wv_request_err(req, &err);
    }
    return 0;
}

int wv_entry_rename(struct wv_request *req, const struct wv_msg_RENAME *msg)
{
    WV_AUTO(wv_place_drop) struct wv_place from = {.dir = -1};
    WV_AUTO(wv_place_drop) struct wv_place to = {.dir = -1};
    unsigned flags = msg->guarded && msg->version.len == 0 ? NOREPLACE : 0;
    struct wv_path path;
    struct stat st;

    if (read_target(req, msg, &path) < 0)
        return -1;
    if (wv_place_find(&from, &req->path, 0) < 0 ||
        fstatat(from.dir, from.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return wv_request_errno(req, "path");
    if ((req->path.dir || path.dir) && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return wv_request_errno(req, req->path.dir ? "path" : "to");
    }
    if (wv_place_find(&to, &path, msg->parents) < 0)
        return wv_request_errno(req, "to");
    if (check_guard(req, msg, &st) < 0)
        return -1;
    if (move(&from, &to, flags) < 0) {
        int sys = errno;

        wv_place_undo(&to, &path);
        errno = sys;
        return flags != 0 && sys == EEXIST ? answer_taken(req, &to)
                                           : wv_request_errno(req, "path");
    }
    /* It may be gone again already, and was renamed all the same. */
    (void)!fstatat(to.dir, to.name, &st, AT_SYMLINK_NOFOLLOW);
    return wv_request_stat(req, WV_MSG_STATED, &st, path.text, wv_str(""));
}
