/* err.h - errors as values: a negative code, details in a caller's struct.
 *
 * A fallible function takes `struct wv_err *err` last and returns 0 or more on success,
 * a negative WV_E* on failure. The struct owns nothing, so nobody has to free it, and it
 * may cross a process border as bytes. `err` is written only on failure and may be NULL.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_BASE_ERR_H
#define WV_BASE_ERR_H

#include <stdarg.h>

enum wv_code {
#define WV_CODE(symbol, number, name) WV_E##symbol = -(number),
#include "base/codes.def"
#undef WV_CODE
};

struct wv_err {
    int code;       /* a WV_E* code */
    int sys;        /* errno, or 0 */
    char op[24];    /* what was being done: a short noun ("cgroup", "mount") */
    char field[32]; /* the option or message field that is wrong, or "" */
    char msg[232];  /* one line, without the errno text */
};

/* Fill err and return code. */
int wv_fail(struct wv_err *err, int code, const char *op, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Fill err from the current errno; the code follows from it (ENOENT is not_found,
 * EPERM denied, ...) and is system where nothing better is known. */
int wv_fail_errno(struct wv_err *err, const char *op, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The code that an errno means. */
int wv_code_of_errno(int sys);

/* "not_found" for WV_ENOT_FOUND; "system" for what is not a code. */
const char *wv_code_name(int code);

#endif
