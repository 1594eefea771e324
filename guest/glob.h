/* glob.h - patterns of file names
 *
 *   *        any bytes of one name          ?      any one byte of a name
 *   **       any bytes, slashes included    [a-z]  one of these; [!a-z] none of them
 *   {a,b}    one of these, nested too       \x     x itself
 *
 * "**" and a slash behind it also match nothing, so that "a/" "**" "/b" finds a/b. A
 * pattern without a slash is about the last name of a path, wherever that is. Bytes,
 * not characters. The time is at most pattern times path, whatever they are.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_GLOB_H
#define WV_GUEST_GLOB_H

#include <stddef.h>
#include <stdint.h>

#define WV_GLOB_MAX 1024u

struct wv_glob {
    const char *text; /* the caller's */
    uint16_t len;     /* 0: matches everything */
    uint8_t names;    /* without a slash */
    /* By place, for where an element begins: its bytes; and for the "{", "," and "}" of
     * a brace the next one of these, and the last. 0: they stand for themselves. */
    uint16_t width[WV_GLOB_MAX], next[WV_GLOB_MAX], last[WV_GLOB_MAX];
};

/* -1 for a pattern that is too long. */
int wv_glob_init(struct wv_glob *glob, const char *text, size_t len);
int wv_glob_match(const struct wv_glob *glob, const char *path, size_t len);

#endif
