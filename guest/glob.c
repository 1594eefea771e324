/* glob.c - patterns of file names
 *
 * All ways to read the pattern are followed at once: a set of the places in it that the
 * path read so far may have led to. So no pattern is slow.
 *
 * SPDX-License-Identifier: MIT */
#include "guest/glob.h"

#include <string.h>

/* Each place is in the set once; `at` is also the list of those to be expanded. */
struct places {
    uint16_t n;
    uint16_t at[WV_GLOB_MAX + 1];
    uint8_t has[WV_GLOB_MAX + 1];
};

static void clear(struct places *set)
{
    set->n = 0;
    memset(set->has, 0, sizeof set->has);
}

static void add(struct places *set, const struct wv_glob *glob, size_t place)
{
    if (place > glob->len)
        place = glob->len;
    if (set->has[place])
        return;
    set->has[place] = 1;
    set->at[set->n++] = (uint16_t)place;
}

/* Where the class at `at` ends ("]" itself); 0: it does not, and is a plain "[". */
static size_t class_end(const struct wv_glob *glob, size_t at)
{
    size_t i = at + 1;

    if (i < glob->len && (glob->text[i] == '!' || glob->text[i] == '^'))
        i++;
    for (i++; i < glob->len; i++)
        if (glob->text[i] == ']')
            return i;
    return 0;
}

static int class_has(const struct wv_glob *glob, size_t at, size_t end, unsigned char c)
{
    const unsigned char *t = (const unsigned char *)glob->text;
    size_t i = at + 1;
    int negated = t[i] == '!' || t[i] == '^', in = 0;

    for (i += (size_t)negated; i < end; i++) {
        if (i + 2 < end && t[i + 1] == '-') {
            in |= t[i] <= c && c <= t[i + 2];
            i += 2;
        } else {
            in |= t[i] == c;
        }
    }
    return in != negated;
}

/* Where each element begins, and how many bytes it is. */
static void measure(struct wv_glob *glob)
{
    size_t end = 0, w;
    int closed = 1; /* there may be a "]" further on */

    for (size_t at = 0; at < glob->len; at += w) {
        w = 1;
        if (glob->text[at] == '\\' && at + 1 < glob->len)
            w = 2;
        else if (closed && glob->text[at] == '[' && (end = class_end(glob, at)) > 0)
            w = end - at + 1;
        else if (glob->text[at] == '[')
            closed = 0;
        glob->width[at] = (uint16_t)w;
    }
}

static int is_in(const char *set, char c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Tie together what belongs to one brace; from the right, so that what comes next is
 * known. Braces that are not in pairs are left to stand for themselves. */
static void pair(struct wv_glob *glob)
{
    uint16_t ends[WV_GLOB_MAX / 2], heads[WV_GLOB_MAX / 2], depth = 0;

    for (size_t at = glob->len; at-- > 0;) {
        char c = glob->text[at];

        if (glob->width[at] != 1 || !is_in("{,}", c) || (c != '}' && depth == 0))
            continue;
        if (c == '}') {
            if (depth == WV_GLOB_MAX / 2)
                return;
            ends[depth] = heads[depth] = (uint16_t)at;
            depth++;
            continue;
        }
        glob->next[at] = heads[depth - 1];
        glob->last[at] = ends[depth - 1];
        heads[depth - 1] = (uint16_t)at;
        if (c == '{') {
            depth--;
            glob->last[ends[depth]] = ends[depth];
        }
    }
    /* A "}" without its "{": forget the commas that were tied to it. */
    for (size_t at = 0; at < glob->len && depth > 0; at++)
        if (glob->text[at] == ',' && glob->last[at] != 0 &&
            glob->last[glob->last[at]] == 0)
            glob->next[at] = glob->last[at] = 0;
}

int wv_glob_init(struct wv_glob *glob, const char *text, size_t len)
{
    if (len >= WV_GLOB_MAX)
        return -1;
    *glob = (struct wv_glob){
        .text = text,
        .len = (uint16_t)len,
        .names = len == 0 || memchr(text, '/', len) == NULL,
    };
    measure(glob);
    pair(glob);
    return 0;
}

/* "**" begins at `at`. */
static int is_any(const struct wv_glob *glob, size_t at)
{
    return at + 1 < glob->len && glob->text[at] == '*' && glob->text[at + 1] == '*';
}

/* Add what can be reached from `at` without a byte of path; begins: of a name. */
static void expand(struct places *set, const struct wv_glob *glob, size_t at,
                   int begins)
{
    char c = at < glob->len ? glob->text[at] : '\0';

    if (is_any(glob, at)) {
        add(set, glob, at + 2);
        if (begins && at + 2 < glob->len && glob->text[at + 2] == '/' &&
            (at == 0 || glob->text[at - 1] == '/'))
            add(set, glob, at + 3);
    } else if (c == '*') {
        add(set, glob, at + 1);
    } else if (at < glob->len && glob->last[at] != 0) {
        /* Behind an alternative it goes on behind the brace. */
        if (c != '{')
            add(set, glob, glob->last[at] + 1u);
        for (size_t i = at; c == '{' && glob->text[i] != '}'; i = glob->next[i])
            add(set, glob, i + 1);
    }
}

/* Add what the element at `at` leads to with the byte c. */
static void take(struct places *set, const struct wv_glob *glob, size_t at, char c)
{
    size_t w = glob->width[at];

    if (is_any(glob, at)) {
        add(set, glob, at);
        return;
    }
    switch (glob->text[at]) {
    case '*':
        if (c != '/')
            add(set, glob, at);
        return;
    case '?':
        if (c != '/')
            add(set, glob, at + 1);
        return;
    case '{':
    case ',':
    case '}':
        if (glob->last[at] != 0)
            return;
        break;
    case '[':
        if (w > 1) {
            if (c != '/' && class_has(glob, at, at + w - 1, (unsigned char)c))
                add(set, glob, at + w);
            return;
        }
        break;
    default:
        break;
    }
    if (glob->text[at + w - 1] == c)
        add(set, glob, at + w);
}

int wv_glob_match(const struct wv_glob *glob, const char *path, size_t len)
{
    struct places sets[2], *now = &sets[0], *next = &sets[1];

    if (glob->len == 0)
        return 1;
    for (size_t i = len; glob->names && i > 0; i--)
        if (path[i - 1] == '/') {
            path += i;
            len -= i;
            break;
        }
    clear(now);
    add(now, glob, 0);
    for (size_t i = 0;; i++) {
        struct places *was = now;

        for (uint16_t k = 0; k < now->n; k++)
            expand(now, glob, now->at[k], i == 0 || path[i - 1] == '/');
        if (i == len || now->n == 0)
            return now->has[glob->len];
        clear(next);
        for (uint16_t k = 0; k < now->n; k++)
            if (now->at[k] < glob->len)
                take(next, glob, now->at[k], path[i]);
        now = next;
        next = was;
    }
}
