/* list.c - what is in a directory, and below it
 *
 * SPDX-License-Identifier: MIT */
#include "guest/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/resolve.h"

#define PAGE 1024u    /* names kept of a directory at a time */
#define PAGE_DEEP 64u /* and of one that is DEEP down */
#define DEEP 16u

enum outcome { FAILED = -1, ON = 0, TOO_MUCH = 1, FULL = 2 };

/* A place in the order of paths: an entry, or, with a slash behind the name, all that
 * is inside a directory. ('-' and '.' come before '/', so "a-b" is between "a" and
 * "a/b".) */
struct key {
    char *text;
    uint16_t len;
    uint8_t inside;
    uint8_t type; /* DT_* */
};

struct page {
    struct key *keys;
    size_t n, room, max;
    int cut; /* there are more, above the last one */
};

/* What is done already: everything up to and including it; of a path with more than one
 * part, as the caller's cursor has, only up to there. */
struct bound {
    const char *text;
    size_t len;
    int partial;
};

struct walk {
    struct wv_request *req;
    const struct wv_list *list;
    uint32_t sent;
    int bounded;
    unsigned budget;
    size_t top_len;
    char path[2 * WV_PATH_ROOM]; /* the top, a slash, and: */
    char *below;                 /* the present directory, with a slash behind, or "" */
    size_t len;                  /* of that */
    char last[WV_PATH_ROOM];     /* path below the top of the last entry sent */
    struct stat st;
    char target[WV_PATH_ROOM];
};

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    return compare(x->text, x->len, y->text, y->len);
}

/* --- a page of names ------------------------------------------------------------- */

static void page_drop(struct page *page)
{
    while (page->n > 0)
        free(page->keys[--page->n].text);
    free(page->keys);
    page->keys = NULL;
}

/* Keep the smaller half of what has been gathered. */
static void page_cut(struct page *page)
{
    if (page->n > 0)
        qsort(page->keys, page->n, sizeof *page->keys, compare_keys);
    while (page->n > page->max) {
        free(page->keys[--page->n].text);
        page->cut = 1;
    }
}

static int page_add(struct page *page, const char *name, int inside, uint8_t type)
{
    size_t len = strlen(name) + (size_t)inside;
    char *text;

    if (page->n == page->room) {
        size_t room = page->room > 0 ? 2 * page->room : 32;
        struct key *grown = realloc(page->keys, room * sizeof *grown);

        if (grown == NULL)
            return -1;
        page->keys = grown;
        page->room = room;
    }
    text = malloc(len + 1);
    if (text == NULL)
        return -1;
    memcpy(text, name, len + 1 - (size_t)inside);
    if (inside)
        text[len - 1] = '/';
    page->keys[page->n++] = (struct key){text, (uint16_t)len, (uint8_t)inside, type};
    if (page->n == 2 * page->max)
        page_cut(page);
    return 0;
}

static int is_done(const struct bound *bound, const char *text, size_t len)
{
    if (bound->text == NULL || compare(text, len, bound->text, bound->len) > 0)
        return 0;
    return !bound->partial || text[len - 1] != '/' || len >= bound->len ||
           memcmp(text, bound->text, len) != 0;
}

/* Is a name wanted, as an entry or (inside, with a slash) as a directory to enter? */
static int is_wanted(struct walk *w, const struct page *page, const struct bound *bound,
                     const char *name, size_t len, int inside)
{
    /* Above the last of a cut page: it is for a later one. */
    if (page->cut && page->n >= page->max) {
        const struct key *last = &page->keys[page->max - 1];

        if (compare(name, len, last->text, last->len) > 0)
            return 0;
    }
    if (is_done(bound, name, len))
        return 0;
    if (inside)
        return 1;
    memcpy(w->below + w->len, name, len);
    return wv_glob_match(&w->list->glob, w->below, w->len + len);
}

static int is_dir(int dir, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

static enum outcome page_read(struct walk *w, DIR *dir, unsigned level,
                              const struct bound *bound, struct page *page)
{
    struct dirent *entry;

    page->max = level < DEEP ? PAGE : PAGE_DEEP;
    for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0) {
        char *name = entry->d_name;
        size_t len = strlen(name);

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || wv_temp_is(name) ||
            len > 255)
            continue;
        if (w->bounded && w->budget-- == 0)
            return TOO_MUCH;
        if (w->top_len + 1 + w->len + len >= WV_PATH_ROOM)
            continue;
        if (is_wanted(w, page, bound, name, len, 0) &&
            page_add(page, name, 0, entry->d_type) < 0)
            return FAILED;
        if (level + 1 < w->list->depth && is_dir(dirfd(dir), entry)) {
            char slashed[258];

            memcpy(slashed, name, len);
            slashed[len] = '/';
            if (is_wanted(w, page, bound, slashed, len + 1, 1) &&
                page_add(page, name, 1, entry->d_type) < 0)
                return FAILED;
        }
    }
    if (errno != 0)
        return FAILED;
    page_cut(page);
    return ON;
}

/* --- entries -------------------------------------------------------------------- */

/* Of an entry in a directory that can be read and not searched, only this is known. */
static mode_t mode_of(uint8_t type)
{
    return type == DT_UNKNOWN ? 0 : DTTOIF(type);
}

static enum outcome send_entry(struct walk *w, int dir, const struct key *key)
{
    struct wv_str target = {w->target, 0};

    if (fstatat(dir, key->text, &w->st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            return ON;
        memset(&w->st, 0, sizeof w->st);
        w->st.st_mode = mode_of(key->type);
    }
    if (w->sent == w->list->limit)
        return FULL;
    if (S_ISLNK(w->st.st_mode)) {
        ssize_t n = readlinkat(dir, key->text, w->target, sizeof w->target);

        target.len = n > 0 ? (uint32_t)n : 0;
    }
    memcpy(w->below + w->len, key->text, key->len + 1u);
    if (wv_request_stat(w->req, WV_MSG_ENTRY, &w->st, w->path, target) < 0)
        return TOO_MUCH;
    memcpy(w->last, w->below, w->len + key->len + 1);
    w->sent++;
    return ON;
}

static enum outcome walk(struct walk *w, int fd, unsigned level);

static enum outcome enter(struct walk *w, int dir, const struct key *key,
                          unsigned level)
{
    size_t len = w->len;
    enum outcome outcome;
    char name[256];
    int fd;

    memcpy(name, key->text, key->len - 1u);
    name[key->len - 1] = '\0';
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? FAILED : ON;
    memcpy(w->below + len, key->text, key->len);
    w->len += key->len;
    outcome = walk(w, fd, level + 1);
    w->len = len;
    return outcome;
}

/* What a cursor says about this directory. */
static struct bound bound_of(const struct walk *w)
{
    struct wv_str after = w->list->after;

    if (after.len <= w->len || memcmp(after.ptr, w->below, w->len) != 0)
        return (struct bound){NULL, 0, 0};
    return (struct bound){after.ptr + w->len, after.len - w->len, 1};
}

static enum outcome walk_pages(struct walk *w, DIR *dir, unsigned level)
{
    struct bound bound = bound_of(w);
    enum outcome outcome = ON;
    char last[258];
    int cut = 1;

    while (outcome == ON && cut) {
        WV_AUTO(page_drop) struct page page = {0};

        rewinddir(dir);
        outcome = page_read(w, dir, level, &bound, &page);
        cut = page.cut;
        for (size_t i = 0; outcome == ON && i < page.n; i++)
            outcome = page.keys[i].inside ? enter(w, dirfd(dir), &page.keys[i], level)
                                          : send_entry(w, dirfd(dir), &page.keys[i]);
        if (outcome == ON && page.n > 0) {
            const struct key *key = &page.keys[page.n - 1];

            memcpy(last, key->text, key->len);
            bound = (struct bound){last, key->len, 0};
        }
    }
    return outcome;
}

/* The entries of fd, which it owns. */
static enum outcome walk(struct walk *w, int fd, unsigned level)
{
    DIR *dir = fdopendir(fd);
    enum outcome outcome;
    int sys;

    if (dir == NULL) {
        close(fd);
        return FAILED;
    }
    outcome = walk_pages(w, dir, level);
    sys = errno;
    closedir(dir);
    errno = sys;
    return outcome;
}

static int answer_end(struct walk *w, enum outcome outcome)
{
    struct wv_msg_END end = {0};

    if (outcome == TOO_MUCH)
        return 1;
    if (outcome == FAILED)
        return wv_request_errno(w->req, "path");
    if (outcome == FULL) {
        end.value = 1;
        end.after = wv_str(w->last);
    }
    return wv_request_send(w->req, WV_MSG_END, &end) < 0 ? 1 : 0;
}

static void walk_drop(struct walk **w)
{
    free(*w);
}

int wv_list(struct wv_request *req, const struct wv_list *list, unsigned budget)
{
    WV_AUTO(walk_drop) struct walk *w = malloc(sizeof *w);
    int fd = wv_resolve(AT_FDCWD, req->path.text, O_RDONLY | O_DIRECTORY);

    if (w == NULL || fd < 0) {
        wv_request_errno(req, "path");
        wv_fd_drop(&fd);
        return -1;
    }
    w->req = req;
    w->list = list;
    w->sent = 0;
    w->bounded = budget > 0;
    w->budget = budget;
    w->len = 0;
    /* The root ends in its own slash. */
    w->top_len = req->path.len == 1 ? 0 : req->path.len;
    memcpy(w->path, req->path.text, w->top_len);
    w->path[w->top_len] = '/';
    w->below = w->path + w->top_len + 1;
    return answer_end(w, walk(w, fd, 0));
}
