/* request.c - one file request and its answers
 *
 * SPDX-License-Identifier: MIT */
#include "guest/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#define ANSWERS_MAX 1048576u
#define SHOWN 320u /* bytes of a path in a message */

void wv_request_init(struct wv_request *req, const char *op)
{
    req->op = op;
    req->path.len = 0;
    req->path.text[0] = '\0';
    wv_buf_init(&req->answers, ANSWERS_MAX);
    req->fd = -1;
    req->sock = -1;
}

void wv_request_fini(struct wv_request *req)
{
    wv_buf_fini(&req->answers);
    wv_fd_drop(&req->fd);
}

int wv_request_flush(struct wv_request *req)
{
    size_t len = wv_buf_len(&req->answers);
    ssize_t n = 0;

    if (len > 0)
        n = wv_fd_send(req->sock, wv_buf_ptr(&req->answers), len, NULL, 0, NULL);
    wv_buf_eat(&req->answers, len);
    return n < 0 ? -1 : 0;
}

int wv_request_send(struct wv_request *req, uint8_t type, const void *msg)
{
    long size = wv_msg_size(type, msg, NULL);
    uint8_t *at;

    if (size < 0)
        return -1;
    if (req->sock >= 0 &&
        wv_buf_len(&req->answers) + WV_ANSWER_HEAD + (size_t)size > WV_BATCH_MAX &&
        wv_request_flush(req) < 0)
        return -1;
    at = wv_buf_room(&req->answers, WV_ANSWER_HEAD + (size_t)size);
    if (at == NULL)
        return -1;
    wv_put32(at, (uint32_t)size);
    at[4] = type;
    wv_msg_put(type, msg, at + WV_ANSWER_HEAD);
    wv_buf_added(&req->answers, WV_ANSWER_HEAD + (size_t)size);
    return 0;
}

/* --- errors --------------------------------------------------------------------- */

/* A path for people: of a long one the two ends, and no control characters. */
static void show(const char *path, char *out)
{
    size_t len = strlen(path), half = SHOWN / 2 - 2;

    if (len < SHOWN)
        memcpy(out, path, len + 1);
    else
        sprintf(out, "%.*s...%s", (int)half, path, path + len - half);
    for (; *out != '\0'; out++)
        if ((unsigned char)*out < ' ' || *out == 127)
            *out = '?';
}

static int send_error(struct wv_request *req, int code, int sys, const char *field,
                      const char *reason, const char *text)
{
    char shown[SHOWN + 1], message[512];
    struct wv_msg_ERROR msg = {
        .code = (uint8_t)-code,
        .sys = (uint32_t)sys,
        .op = wv_str(req->op),
        .field = wv_str(field),
        .reason = wv_str(reason),
    };

    show(req->path.text, shown);
    snprintf(message, sizeof message, "%s %s%s%.150s", req->op, shown,
             shown[0] != '\0' ? ": " : "", text);
    msg.message = wv_str(message);
    wv_request_send(req, WV_MSG_ERROR, &msg);
    return -1;
}

static const char *reason_of(int sys)
{
    switch (sys) {
    case ENOSPC:
    case EDQUOT:
        return "disk";
    case ENOMEM:
        return "memory";
    case EMFILE:
    case ENFILE:
        return "files";
    case EFBIG:
        return "file_size";
    case EISDIR:
        return "directory";
    case ENOTDIR:
        return "not_directory";
    case EROFS:
        return "read_only";
    case EOPNOTSUPP:
        return "not_a_file";
    case EXDEV:
        return "other_file_system";
    default:
        return "";
    }
}

int wv_request_errno(struct wv_request *req, const char *field)
{
    int sys = errno, code = wv_code_of_errno(sys);

    if (code == WV_EAGAIN)
        code = WV_EUNAVAILABLE;
    else if (sys == EXDEV)
        code = WV_EUNSUPPORTED;
    return send_error(req, code, sys, field, reason_of(sys), strerror(sys));
}

int wv_request_fail(struct wv_request *req, int code, const char *field,
                    const char *reason, const char *text)
{
    return send_error(req, code, 0, field, reason, text);
}

int wv_request_err(struct wv_request *req, const struct wv_err *err)
{
    return send_error(req, err->code, err->sys, err->field, reason_of(err->sys),
                      err->msg);
}

int wv_request_conflict(struct wv_request *req, const char *version)
{
    return send_error(req, WV_ECONFLICT, 0, "version", version,
                      version[0] != '\0' ? "it has another version"
                                         : "it is not there");
}

/* --- what is known of a file ------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 31) * 0x94d049bb133111ebu;
    return h ^ h >> 29;
}

/* The time is exact, the rest a hash: ERROR.reason has room for 32 bytes. */
void wv_version_of(const struct stat *st, char out[WV_VERSION_ROOM])
{
    uint64_t sec = (uint64_t)st->st_ctim.tv_sec, ns = (uint64_t)st->st_ctim.tv_nsec;
    uint64_t h = mix(mix(mix(0, st->st_ino), st->st_dev), (uint64_t)st->st_size);

    snprintf(out, WV_VERSION_ROOM, "%016llx%016llx",
             (unsigned long long)(sec * 1000000000u + ns), (unsigned long long)h);
}

static uint8_t type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return WV_FILE_REGULAR;
    case S_IFDIR:
        return WV_FILE_DIRECTORY;
    case S_IFLNK:
        return WV_FILE_SYMLINK;
    case S_IFIFO:
        return WV_FILE_FIFO;
    case S_IFSOCK:
        return WV_FILE_SOCKET;
    case S_IFCHR:
        return WV_FILE_CHAR;
    case S_IFBLK:
        return WV_FILE_BLOCK;
    default:
        return 0;
    }
}

/* FILE, STATED and ENTRY have the same fields, so one struct serves for all. */
_Static_assert(sizeof(struct wv_msg_STATED) == sizeof(struct wv_msg_ENTRY),
               "as STATED");
_Static_assert(sizeof(struct wv_msg_STATED) == sizeof(struct wv_msg_FILE), "as STATED");

int wv_request_stat(struct wv_request *req, uint8_t type, const struct stat *st,
                    const char *path, struct wv_str target)
{
    char user[64], group[64], version[WV_VERSION_ROOM];
    struct wv_msg_STATED msg = {
        .type = type_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = (uint64_t)st->st_size,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .path = wv_str(path),
        .target = target,
    };

    /* Before 1970 is as good as never. */
    if (st->st_mtim.tv_sec >= 0)
        msg.mtime_us = (uint64_t)st->st_mtim.tv_sec * 1000000u +
                       (uint64_t)st->st_mtim.tv_nsec / 1000u;
    wv_user_name(st->st_uid, user);
    wv_group_name(st->st_gid, group);
    wv_version_of(st, version);
    msg.user = wv_str(user);
    msg.group = wv_str(group);
    msg.version = wv_str(version);
    return wv_request_send(req, type, &msg);
}
