/* remove.c - removing files and trees
 *
 * SPDX-License-Identifier: MIT */
#include "guest/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/resolve.h"

#define WINDOW 32u  /* directories open at once; above them it finds back by ".." */
#define PASSES 64   /* over a directory that somebody goes on filling */
#define LARGE 32768 /* blocks of 512 bytes: freeing that takes a while */

struct level {
    DIR *dir; /* NULL: closed for now */
    dev_t dev;
    ino_t ino;
    int passes;
    char name[256]; /* in the level above */
};

struct tree {
    struct level *levels;
    size_t n, room;
    int sys;
    char failed[256]; /* the entry that could not be removed, for sys */
};

/* --- what may be removed ---------------------------------------------------------- */

static int is_workspace(const struct wv_place *place)
{
    struct stat st, workspace;

    return fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           stat(WV_WORKSPACE, &workspace) == 0 && st.st_dev == workspace.st_dev &&
           st.st_ino == workspace.st_ino;
}

/* Refuse what must stay: the root, a mount, the workspace. 0, or -1 and answered. */
static int find(struct wv_place *place, struct wv_request *req)
{
    if (wv_path_name(&req->path)[0] == '\0')
        return wv_request_fail(req, WV_EDENIED, "path", "root", "it is the root");
    if (wv_place_find(place, &req->path, 0) < 0)
        return wv_request_errno(req, "path");
    if (wv_place_is_mount(place))
        return wv_request_fail(req, WV_EDENIED, "path", "mount",
                               "a file system is mounted there");
    if (is_workspace(place))
        return wv_request_fail(req, WV_EDENIED, "path", "workspace",
                               "it is the workspace");
    return 0;
}

/* Is the entry what the caller means? *st is about it. */
static int check(struct wv_request *req, const struct wv_place *place,
                 const struct wv_msg_REMOVE *msg, struct stat *st)
{
    char version[WV_VERSION_ROOM];

    if (fstatat(place->dir, place->name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return wv_request_errno(req, "path");
    if (req->path.dir && !S_ISDIR(st->st_mode)) {
        errno = ENOTDIR;
        return wv_request_errno(req, "path");
    }
    wv_version_of(st, version);
    if (msg->guarded && (msg->version.len != strlen(version) ||
                         memcmp(msg->version.ptr, version, msg->version.len) != 0))
        return wv_request_conflict(req, version);
    return 0;
}

int wv_remove_one(struct wv_request *req, const struct wv_msg_REMOVE *msg)
{
    WV_AUTO(wv_place_drop) struct wv_place place = {.dir = -1};
    struct stat st;
    int is_dir;

    if (find(&place, req) < 0 || check(req, &place, msg, &st) < 0)
        return -1;
    is_dir = S_ISDIR(st.st_mode);
    if (!is_dir && st.st_nlink == 1 && st.st_blocks > LARGE)
        return 1;
    if (unlinkat(place.dir, place.name, is_dir ? AT_REMOVEDIR : 0) == 0)
        return wv_request_send(req, WV_MSG_OK, &(struct wv_msg_OK){0});
    if (msg->recursive && is_dir && (errno == ENOTEMPTY || errno == EEXIST))
        return 1;
    return wv_request_errno(req, "path");
}

/* --- trees ------------------------------------------------------------------------ */

static int fail_at(struct tree *t, const char *name)
{
    t->sys = errno;
    snprintf(t->failed, sizeof t->failed, "%s", name);
    return -1;
}

/* Go down into the directory fd, which it owns. */
static int push(struct tree *t, int fd, const char *name)
{
    struct level *level;
    struct stat st;

    if (t->n == t->room) {
        size_t room = t->room > 0 ? 2 * t->room : 16;
        struct level *grown = realloc(t->levels, room * sizeof *grown);

        if (grown == NULL) {
            close(fd);
            return -1;
        }
        t->levels = grown;
        t->room = room;
    }
    level = &t->levels[t->n];
    *level = (struct level){.dir = NULL};
    if (fstat(fd, &st) < 0 || (level->dir = fdopendir(fd)) == NULL) {
        close(fd);
        return -1;
    }
    level->dev = st.st_dev;
    level->ino = st.st_ino;
    snprintf(level->name, sizeof level->name, "%s", name);
    t->n++;
    if (t->n > WINDOW && t->levels[t->n - WINDOW - 1].dir != NULL) {
        closedir(t->levels[t->n - WINDOW - 1].dir);
        t->levels[t->n - WINDOW - 1].dir = NULL;
    }
    return 0;
}

/* Open the level above `from` again, if it is still above. */
static int reopen(struct level *level, int from)
{
    int fd = openat(from, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_dev == level->dev && st.st_ino == level->ino &&
        (level->dir = fdopendir(fd)) != NULL)
        return 0;
    close(fd);
    errno = EBUSY; /* somebody moved the tree */
    return -1;
}

/* The last level is empty: go up and remove it. 1: it had been filled again. */
static int pop(struct tree *t, const struct wv_place *top)
{
    struct level *level = &t->levels[t->n - 1], *above = t->n > 1 ? level - 1 : NULL;
    int dir = top->dir;

    if (above != NULL) {
        if (above->dir == NULL && reopen(above, dirfd(level->dir)) < 0)
            return fail_at(t, level->name);
        dir = dirfd(above->dir);
    }
    if (unlinkat(dir, level->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
        if ((errno != ENOTEMPTY && errno != EEXIST) || ++level->passes == PASSES)
            return fail_at(t, level->name);
        rewinddir(level->dir);
        return 1;
    }
    closedir(level->dir);
    t->n--;
    return 0;
}

/* Remove one entry of the last level, or go into it. */
static int take(struct tree *t, const struct dirent *entry)
{
    int dir = dirfd(t->levels[t->n - 1].dir), fd;
    const char *name = entry->d_name;

    if (entry->d_type != DT_DIR) {
        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
            return 0;
        if (entry->d_type != DT_UNKNOWN || (errno != EISDIR && errno != EPERM))
            return fail_at(t, name);
    }
    /* An empty one goes without being opened, which may not be allowed. */
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return fail_at(t, name);
    fd = wv_resolve_child(dir, name, O_RDONLY);
    if (fd < 0 && errno == EXDEV)
        errno = EBUSY;
    if (fd < 0 || push(t, fd, name) < 0)
        return fail_at(t, name);
    return 0;
}

static int remove_all(struct tree *t, const struct wv_place *top)
{
    int fd = wv_resolve_child(top->dir, top->name, O_RDONLY);

    if (fd < 0 || push(t, fd, top->name) < 0)
        return fail_at(t, top->name);
    while (t->n > 0) {
        struct dirent *entry;

        errno = 0;
        entry = readdir(t->levels[t->n - 1].dir);
        if (entry == NULL) {
            if (errno != 0)
                return fail_at(t, t->levels[t->n - 1].name);
            if (pop(t, top) < 0)
                return -1;
        } else if (strcmp(entry->d_name, ".") != 0 &&
                   strcmp(entry->d_name, "..") != 0 && take(t, entry) < 0) {
            return -1;
        }
    }
    return 0;
}

static void tree_drop(struct tree *t)
{
    while (t->n > 0)
        if (t->levels[--t->n].dir != NULL)
            closedir(t->levels[t->n].dir);
    free(t->levels);
}

/* Name the entry where it stopped, as far as it fits. */
static void answer_failed(struct wv_request *req, const struct tree *t)
{
    char text[128];
    struct wv_err err;

    snprintf(text, sizeof text, "%.80s", t->failed);
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    errno = t->sys;
    wv_fail_errno(&err, req->op, "%s at '%s'", strerror(t->sys), text);
    snprintf(err.field, sizeof err.field, "path");
    wv_request_err(req, &err);
}

void wv_remove_tree(struct wv_request *req, const void *unused)
{
    WV_AUTO(wv_place_drop) struct wv_place place = {.dir = -1};
    WV_AUTO(tree_drop) struct tree tree = {0};

    (void)unused;
    /* Looked up again, with the worker's own rights: what counts is what is there now.
     */
    if (find(&place, req) < 0)
        return;
    if (unlinkat(place.dir, place.name, 0) < 0 &&
        (errno == EISDIR ? remove_all(&tree, &place) : fail_at(&tree, place.name)) < 0)
        answer_failed(req, &tree);
    else
        wv_request_send(req, WV_MSG_OK, &(struct wv_msg_OK){0});
}
