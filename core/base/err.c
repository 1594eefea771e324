/* err.c - errors as values
 *
 * SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>

static int fill(struct wv_err *err, int code, int sys, const char *op, const char *fmt,
                va_list args) __attribute__((format(printf, 5, 0)));

static int fill(struct wv_err *err, int code, int sys, const char *op, const char *fmt,
                va_list args)
{
    if (err != NULL) {
        err->code = code;
        err->sys = sys;
        err->field[0] = '\0';
        snprintf(err->op, sizeof err->op, "%s", op);
        vsnprintf(err->msg, sizeof err->msg, fmt, args);
    }
    return code;
}

int wv_fail(struct wv_err *err, int code, const char *op, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fill(err, code, 0, op, fmt, args);
    va_end(args);
    return code;
}

int wv_fail_errno(struct wv_err *err, const char *op, const char *fmt, ...)
{
    int sys = errno;
    int code = wv_code_of_errno(sys);
    va_list args;

    va_start(args, fmt);
    fill(err, code, sys, op, fmt, args);
    va_end(args);
    return code;
}

int wv_code_of_errno(int sys)
{
    switch (sys) {
    case ENOENT:
    case ESRCH:
        return WV_ENOT_FOUND;
    case EEXIST:
        return WV_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return WV_EDENIED;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENOEXEC:
    case E2BIG:
        return WV_EINVALID;
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
        return WV_ECONFLICT;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
        return WV_ELIMIT;
    case EMFILE:
    case ENFILE:
        return WV_ECAPACITY;
    case ENOSYS:
    case EOPNOTSUPP:
        return WV_EUNSUPPORTED;
    case EAGAIN:
        return WV_EAGAIN;
    case ETIMEDOUT:
        return WV_ETIMEOUT;
    case EPIPE:
    case ECONNRESET:
        return WV_ELOST;
    default:
        return WV_ESYSTEM;
    }
}

const char *wv_code_name(int code)
{
    switch (code) {
#define WV_CODE(symbol, number, name)                                                  \
    case WV_E##symbol:                                                                 \
        return name;
#include "base/codes.def"
#undef WV_CODE
    default:
        return "system";
    }
}
