/* path.c - paths of file requests, as text
 *
 * SPDX-License-Identifier: MIT */
#include "guest/path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEMP_HEAD ".wovyr-"
#define TEMP_TAIL ".tmp"
#define TEMP_DIGITS 16

static int add_part(struct wv_path *p, const char *part, size_t n)
{
    if (n == 0 || (n == 1 && part[0] == '.'))
        return 0;
    if (p->len + 1 + n >= sizeof p->text)
        return -1;
    p->text[p->len++] = '/';
    memcpy(p->text + p->len, part, n);
    p->len = (uint16_t)(p->len + n);
    return 0;
}

static int add(struct wv_path *p, const char *text, size_t len)
{
    size_t n;

    for (size_t i = 0; i < len; i += n + 1) {
        const char *slash = memchr(text + i, '/', len - i);

        n = slash != NULL ? (size_t)(slash - (text + i)) : len - i;
        if (add_part(p, text + i, n) < 0)
            return -1;
    }
    return 0;
}

static int is_home(struct wv_str s)
{
    return s.len > 0 && s.ptr[0] == '~' && (s.len == 1 || s.ptr[1] == '/');
}

/* Must the last part be a directory? */
static int ends_as_dir(struct wv_str s)
{
    size_t n = s.len;

    while (n > 0 && s.ptr[n - 1] == '.' && s.len - n < 2)
        n--;
    return n == 0 ? s.len > 0 : s.ptr[n - 1] == '/';
}

static int refuse(struct wv_err *err, int sys, const char *field, const char *why)
{
    int code = wv_fail(err, WV_EINVALID, "path", "%s", why);

    if (err != NULL) {
        err->sys = sys;
        snprintf(err->field, sizeof err->field, "%s", field);
    }
    return code;
}

/* Add s to *p, which begins anew where s does not depend on where it is. */
static int enter(struct wv_path *p, struct wv_str s, const char *home,
                 const char *field, struct wv_err *err)
{
    size_t skip = 0;

    if (s.len > 0 && memchr(s.ptr, '\0', s.len) != NULL)
        return refuse(err, EINVAL, field, "a zero byte in the path");
    if (s.len >= WV_PATH_ROOM)
        return refuse(err, ENAMETOOLONG, field, "the path is too long");
    if (is_home(s)) {
        p->len = 0;
        skip = 1;
        if (add(p, home, strlen(home)) < 0)
            return refuse(err, ENAMETOOLONG, field, "the path is too long");
    } else if (s.len > 0 && s.ptr[0] == '/') {
        p->len = 0;
    }
    if (add(p, s.ptr + skip, s.len - skip) < 0)
        return refuse(err, ENAMETOOLONG, field, "the path is too long");
    return 0;
}

int wv_path_make(struct wv_path *out, struct wv_str path, struct wv_str cwd,
                 const char *home, struct wv_err *err)
{
    int status = 0;

    out->len = 0;
    add(out, WV_WORKSPACE, sizeof WV_WORKSPACE - 1);
    if (path.len == 0 || (path.ptr[0] != '/' && !is_home(path)))
        status = enter(out, cwd, home, "cwd", err);
    if (status == 0)
        status = enter(out, path, home, "path", err);
    if (status < 0)
        return status;
    if (out->len == 0)
        out->text[out->len++] = '/';
    out->text[out->len] = '\0';
    out->dir = (uint8_t)ends_as_dir(path);
    return 0;
}

const char *wv_path_name(const struct wv_path *path)
{
    return strrchr(path->text, '/') + 1;
}

void wv_temp_name(char out[WV_TEMP_ROOM], uint64_t number)
{
    snprintf(out, WV_TEMP_ROOM, TEMP_HEAD "%016llx" TEMP_TAIL,
             (unsigned long long)number);
}

int wv_temp_is(const char *name)
{
    const size_t head = sizeof TEMP_HEAD - 1;

    return strncmp(name, TEMP_HEAD, head) == 0 &&
           strspn(name + head, "0123456789abcdef") == TEMP_DIGITS &&
           strcmp(name + head + TEMP_DIGITS, TEMP_TAIL) == 0;
}
