/* path.h - paths of file requests, as text
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_PATH_H
#define WV_GUEST_PATH_H

#include <stdint.h>

#include "base/err.h"
#include "wire/msg.h"

#define WV_PATH_ROOM 4096u /* with the NUL */
#define WV_WORKSPACE "/workspace"

struct wv_path {
    uint16_t len;
    uint8_t dir; /* ended in a slash: only a directory is meant */
    char text[WV_PATH_ROOM];
};

/* path below cwd (below the workspace when that is relative or ""), with "~" as home:
 * to an absolute one without empty and "." parts. ".." stays, because what it means
 * depends on links. WV_EINVALID with field "path" or "cwd" for a NUL byte and for more
 * bytes than the kernel takes. */
int wv_path_make(struct wv_path *out, struct wv_str path, struct wv_str cwd,
                 const char *home, struct wv_err *err);

/* The last part; "" for the root. */
const char *wv_path_name(const struct wv_path *path);

/* The names of unfinished files, which a listing leaves out: .wovyr-<16 hex>.tmp */
#define WV_TEMP_ROOM 28
void wv_temp_name(char out[WV_TEMP_ROOM], uint64_t number);
int wv_temp_is(const char *name);

#endif
