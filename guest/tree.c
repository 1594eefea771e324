/* tree.c - who descends from whom, by /proc
 *
 * /proc/PID/task/TID/children would be shorter, but it is per thread and absent in
 * gVisor.
 *
 * SPDX-License-Identifier: MIT */
#include "guest/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

struct member {
    pid_t pid, parent, group;
    uint64_t ticks;
    char state;
    char in;
};

struct tree {
    struct member *v;
    size_t n, cap;
};

static void tree_drop(struct tree *tree)
{
    free(tree->v);
}

/* "pid (comm) state ppid pgrp ...": comm may hold anything, so count from its last ')'.
 */
static int parse_stat(const char *text, struct member *m)
{
    const char *at = strrchr(text, ')');
    unsigned long utime, stime;
    long cutime, cstime;

    if (at == NULL ||
        sscanf(at + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
               &m->state, &m->parent, &m->group, &utime, &stime, &cutime, &cstime) != 7)
        return -1;
    m->ticks = utime + stime + (unsigned long)cutime + (unsigned long)cstime;
    m->in = 0;
    return 0;
}

static int read_member(int proc, const char *name, struct member *m)
{
    char path[32], text[512];
    ssize_t n;
    int fd;

    if (strlen(name) > 12)
        return -1;
    snprintf(path, sizeof path, "%s/stat", name);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    m->pid = (pid_t)atoi(name);
    return parse_stat(text, m);
}

static struct member *add(struct tree *tree)
{
    if (tree->n == tree->cap) {
        size_t cap = tree->cap > 0 ? tree->cap * 2 : 64;
        struct member *v = realloc(tree->v, cap * sizeof *v);

        if (v == NULL)
            return NULL;
        tree->v = v;
        tree->cap = cap;
    }
    return &tree->v[tree->n];
}

static int by_pid(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int tree_read(struct tree *tree)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    struct member *m;

    if (proc == NULL)
        return -1;
    while ((entry = readdir(proc)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            (m = add(tree)) != NULL && read_member(dirfd(proc), entry->d_name, m) == 0)
            tree->n++;
    closedir(proc);
    if (tree->n > 0)
        qsort(tree->v, tree->n, sizeof *tree->v, by_pid);
    return 0;
}

/* Whoever has a member as its parent is one. Children mostly have larger pids than
 * their parents, so this settles in a pass or two. */
static void spread(struct tree *tree)
{
    int changed;

    do {
        changed = 0;
        for (size_t i = 0; i < tree->n; i++) {
            struct member key = {.pid = tree->v[i].parent};
            const struct member *parent;

            if (tree->v[i].in)
                continue;
            parent = bsearch(&key, tree->v, tree->n, sizeof key, by_pid);
            if (parent != NULL && parent->in)
                changed = tree->v[i].in = 1;
        }
    } while (changed);
}

/* A group is killed as one, however fast it forks: the kernel lets no fork slip
 * through. Every command has a session of its own, so no group reaches beyond one tree.
 */
static void kill_groups(const struct tree *tree)
{
    pid_t own = getpgrp(), last = 0;

    for (size_t i = 0; i < tree->n; i++) {
        const struct member *m = &tree->v[i];

        if (!m->in || m->group <= 1 || m->group == own || m->group == last)
            continue;
        last = m->group;
        kill(-last, SIGKILL);
    }
}

static struct wv_tree_count signal_members(struct tree *tree, int signal, pid_t group)
{
    struct wv_tree_count count = {0};
    uint64_t ticks = 0;

    spread(tree);
    if (signal == SIGKILL && group == 0)
        kill_groups(tree);
    for (size_t i = 0; i < tree->n; i++) {
        const struct member *m = &tree->v[i];

        if (!m->in)
            continue;
        count.members++;
        count.alive += m->state != 'Z';
        ticks += m->ticks;
        /* A zombie may be a leader whose other threads live on: signal it all the same.
         */
        if (signal != 0 && (group == 0 || m->group == group))
            kill(m->pid, signal);
    }
    count.cpu_us = ticks * 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    return count;
}

struct wv_tree_count wv_tree_signal(int signal, pid_t group)
{
    WV_AUTO(tree_drop) struct tree tree = {0};
    pid_t self = getpid();

    if (tree_read(&tree) < 0)
        return (struct wv_tree_count){.members = 1};
    for (size_t i = 0; i < tree.n; i++)
        tree.v[i].in = tree.v[i].parent == self;
    return signal_members(&tree, signal, group);
}

struct wv_tree_count wv_tree_strangers(int (*ours)(void *arg, pid_t pid), void *arg)
{
    WV_AUTO(tree_drop) struct tree tree = {0};
    pid_t self = getpid();

    if (tree_read(&tree) < 0)
        return (struct wv_tree_count){.members = 1};
    for (size_t i = 0; i < tree.n; i++)
        tree.v[i].in = tree.v[i].parent == self && !ours(arg, tree.v[i].pid);
    return signal_members(&tree, SIGKILL, 0);
}
