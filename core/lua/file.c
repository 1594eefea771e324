/* file.c - File: the descriptor of a FILE message, read by the host
 *
 * SPDX-License-Identifier: MIT */
#include "client/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fd.h"
#include "lua/bind.h"

#define FILES_PER_LINK 16u
#define FILES_PER_STATE 256u
#define ON_STACK 65536u

/* One per Lua state, in the registry for as long as it lives. */
struct count {
    unsigned files;
};

/* Its address is the registry key of that count. */
static const char count_key;

struct file {
    int fd;
    struct wv_link *link; /* held */
    struct count *count;
};

void wv_file_prepare(lua_State *L)
{
    wv_reg_get(L, &count_key);
    if (lua_isnil(L, -1)) {
        struct count *count = wv_newuserdata(L, sizeof *count);

        count->files = 0;
        wv_reg_set(L, &count_key);
    }
    lua_pop(L, 1);
}

/* Either our table was full, which is not the guest's fault, or it sent none. */
static int no_descriptor(struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int spare = open("/", O_PATH | O_CLOEXEC);

    if (spare < 0 && (errno == EMFILE || errno == ENFILE))
        return wv_fail(err, WV_ECAPACITY, "file", "no room for a passed descriptor");
    return wv_fail(err, WV_EPROTOCOL, "file", "no descriptor came with the message");
}

int wv_file_push(lua_State *L, int index, int *fd)
{
    static const struct file closed = {.fd = -1};
    struct wv_link *link = lua_touserdata(L, index);
    struct file *file = wv_ud_new(L, &wv_file_class, sizeof closed, &closed);
    struct count *count;
    struct wv_err err;
    int rc = 0;

    lua_pushvalue(L, index);
    wv_ud_hold(L, -2);
    wv_reg_get(L, &count_key);
    count = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (*fd < 0)
        rc = no_descriptor(&err);
    else if (link->files >= FILES_PER_LINK)
        rc = wv_fail(&err, WV_ECAPACITY, "file", "%u files of this session are open",
                     link->files);
    else if (count->files >= FILES_PER_STATE)
        rc = wv_fail(&err, WV_ECAPACITY, "file", "%u files of sessions are open",
                     count->files);
    else
        rc = wv_file_check(*fd, &err);
    if (rc < 0) {
        lua_pop(L, 1);
        wv_fd_drop(fd);
        return wv_push_err(L, &err);
    }
    file->fd = wv_fd_take(fd);
    file->link = link;
    file->count = count;
    link->files++;
    count->files++;
    return 1;
}

static struct file *check_file(lua_State *L)
{
    return wv_ud_check(L, 1, &wv_file_class);
}

static int file_close(lua_State *L)
{
    struct file *file = check_file(L);

    if (file->fd < 0)
        return 0;
    wv_fd_drop(&file->fd);
    file->link->files--;
    file->count->files--;
    return 0;
}

/* What is pushed when it cannot be used any more, also in a forked copy; else 0. */
static int push_closed(lua_State *L, const struct file *file)
{
    if (file->fd >= 0 && file->link->peer.pid == getpid())
        return 0;
    return wv_push_fail(L, WV_ECLOSED, "file", "the file is closed");
}

/* file:size() -> bytes */
static int file_size(lua_State *L)
{
    struct file *file = check_file(L);
    struct wv_err err;
    int64_t size;

    if (push_closed(L, file))
        return 2;
    size = wv_file_size(file->fd, &err);
    if (size < 0)
        return wv_push_err(L, &err);
    wv_push_u64(L, (uint64_t)size);
    return 1;
}

/* Room for n bytes: small ones on the caller's stack, others as garbage of Lua's. */
static char *room_for(lua_State *L, char *small, size_t n)
{
    return n <= ON_STACK ? small : wv_newuserdata(L, n);
}

/* file:read(offset, n) -> string, shorter than n only at the end, "" there */
static int file_read(lua_State *L)
{
    struct file *file = check_file(L);
    uint64_t offset = wv_check_u64(L, 2, INT64_MAX);
    uint64_t n = wv_check_u64(L, 3, SIZE_MAX / 4);
    char small[ON_STACK];
    struct wv_err err;
    char *data;
    ssize_t got;

    if (push_closed(L, file))
        return 2;
    if (n > ON_STACK) { /* no more memory than there is to read */
        int64_t size = wv_file_size(file->fd, &err);
        uint64_t left =
            size > 0 && (uint64_t)size > offset ? (uint64_t)size - offset : 0;

        if (n > left)
            n = left > ON_STACK ? left : ON_STACK;
    }
    data = room_for(L, small, (size_t)n);
    got = wv_file_read(file->fd, offset, data, (size_t)n, &err);
    if (got < 0)
        return wv_push_err(L, &err);
    lua_pushlstring(L, data, (size_t)got);
    return 1;
}

/* file:save(host_path, max) -> true */
static int file_save(lua_State *L)
{
    struct file *file = check_file(L);
    const char *path = luaL_checkstring(L, 2);
    uint64_t max = lua_isnoneornil(L, 3) ? UINT64_MAX : wv_check_u64(L, 3, UINT64_MAX);
    struct wv_err err;

    if (push_closed(L, file))
        return 2;
    if (wv_file_save(file->fd, path, max, &err) < 0)
        return wv_push_err(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static const luaL_Reg file_methods[] = {
    {"size", file_size},
    {"read", file_read},
    {"save", file_save},
    {NULL,   NULL     },
};

const struct wv_class wv_file_class = {"wovyr.File", file_close, file_methods};
