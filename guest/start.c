/* start.c - from a START message to an exec parent at work
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guest/follow.h"
#include "guest/stdio.h"

#define WORKSPACE "/workspace"
#define PATH_USUAL "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define ARGV_KEPT 4096u     /* bytes of argv that a record remembers */
#define DEFAULTS_ROOM 8192u /* cwd and the usual environment */

static int invalid(struct wv_err *err, const char *field, const char *why)
{
    wv_fail(err, WV_EINVALID, "start", "%s", why);
    snprintf(err->field, sizeof err->field, "%s", field);
    return err->code;
}

/* --- the order ------------------------------------------------------------------ */

/* Append text and its NUL; no NUL may be inside. */
static int put(char **at, const char *text, size_t len)
{
    if (memchr(text, '\0', len) != NULL)
        return -1;
    memcpy(*at, text, len);
    (*at)[len] = '\0';
    *at += len + 1;
    return 0;
}

static int put_cwd(char **at, struct wv_str cwd, const struct wv_user *user)
{
    char path[4096 + 320];

    if (cwd.len == 0)
        return put(at, WORKSPACE, sizeof WORKSPACE - 1);
    if (cwd.ptr[0] == '/')
        return put(at, cwd.ptr, cwd.len);
    if (cwd.ptr[0] == '~' && (cwd.len == 1 || cwd.ptr[1] == '/'))
        snprintf(path, sizeof path, "%s%.*s", user->home, (int)cwd.len - 1,
                 cwd.ptr + 1);
    else
        snprintf(path, sizeof path, WORKSPACE "/%.*s", (int)cwd.len, cwd.ptr);
    return put(at, path, strlen(path));
}

static int has_name(struct wv_strv env, const char *name)
{
    size_t len = strlen(name);
    struct wv_str item;

    while (wv_strv_next(&env, &item))
        if (item.len > len && item.ptr[len] == '=' && memcmp(item.ptr, name, len) == 0)
            return 1;
    return 0;
}

static uint32_t put_usual(char **at, const struct wv_msg_START *start,
                          const struct wv_user *user)
{
    const char *const usual[][2] = {
        {"PATH",    PATH_USUAL      },
        {"HOME",    user->home      },
        {"USER",    user->name      },
        {"LOGNAME", user->name      },
        {"SHELL",   user->shell     },
        {"LANG",    "C.UTF-8"       },
        {"TERM",    "xterm-256color"},
    };
    size_t n = sizeof usual / sizeof usual[0] - ((start->flags & WV_START_PTY) == 0);
    uint32_t added = 0;

    for (size_t i = 0; i < n; i++) {
        if (has_name(start->env, usual[i][0]))
            continue;
        *at += sprintf(*at, "%s=%s", usual[i][0], usual[i][1]) + 1;
        added++;
    }
    return added;
}

static int put_texts(char **at, const struct wv_msg_START *start,
                     struct wv_order *order, const struct wv_user *user,
                     struct wv_err *err)
{
    struct wv_strv argv = start->argv, env = start->env;
    struct wv_str item;

    if (put_cwd(at, start->cwd, user) < 0)
        return invalid(err, "cwd", "cwd has a NUL byte");
    while (wv_strv_next(&argv, &item)) {
        if (put(at, item.ptr, item.len) < 0 || (order->argc == 0 && item.len == 0))
            return invalid(err, "cmd", "the command is empty or has a NUL byte");
        order->argc++;
    }
    if (order->argc == 0)
        return invalid(err, "cmd", "the command is empty");
    while (wv_strv_next(&env, &item)) {
        const char *eq = item.len > 0 ? memchr(item.ptr, '=', item.len) : NULL;

        if (eq == NULL || eq == item.ptr || put(at, item.ptr, item.len) < 0)
            return invalid(err, "env", "an environment entry is not NAME=value");
        order->envc++;
    }
    order->envc += put_usual(at, start, user);
    return 0;
}

static int give_order(struct wv_process *p, const struct wv_msg_START *start,
                      const struct wv_user *user, struct wv_stdio *io,
                      struct wv_err *err)
{
    size_t room =
        sizeof(struct wv_order) + start->argv.len + start->env.len + DEFAULTS_ROOM;
    struct wv_order *order = calloc(1, room);
    char *at = (char *)(order + 1);
    int fds[3], rc;
    size_t nfds = 0;

    if (order == NULL)
        return wv_fail_errno(err, "start", "allocating");
    order->kind = WV_ORDER_START;
    order->flags = start->flags;
    order->umask = start->umask;
    order->nice = (int32_t)start->nice;
    order->cpu_ms = start->cpu_ms;
    order->uid = user->uid;
    order->gid = user->gid;
    order->ngroups = user->ngroups;
    memcpy(order->groups, user->groups, sizeof order->groups);
    for (int i = 0; i < 3; i++)
        if (io->theirs[i] >= 0) {
            order->fds |= 1u << i;
            fds[nfds++] = io->theirs[i];
        }
    rc = put_texts(&at, start, order, user, err);
    if (rc == 0) {
        p->parent = wv_parent_start(p->agent, p, order, (size_t)(at - (char *)order),
                                    fds, nfds, err);
        rc = p->parent != NULL ? 0 : err->code;
    }
    free(order);
    return rc;
}

/* --- the record ----------------------------------------------------------------- */

static uint64_t hash(uint64_t h, const void *data, size_t len)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

/* What makes two STARTs with one key the same. */
static uint64_t recipe_of(const struct wv_msg_START *s)
{
    const uint64_t numbers[] = {s->flags, s->timeout_ms, s->cpu_ms, s->output,
                                s->umask, s->nice,       s->cols,   s->rows};
    uint64_t h = hash(14695981039346656037u, numbers, sizeof numbers);

    h = hash(h, s->argv.ptr, s->argv.len);
    h = hash(h, s->env.ptr, s->env.len);
    h = hash(h, s->cwd.ptr, s->cwd.len);
    h = hash(h, "/", 1);
    h = hash(h, s->user.ptr, s->user.len);
    h = hash(h, "/", 1);
    return hash(h, s->tag.ptr, s->tag.len);
}

static char *keep_text(char **at, struct wv_str text)
{
    char *kept = *at;

    for (uint32_t i = 0; i < text.len; i++)
        kept[i] = text.ptr[i] != '\0' ? text.ptr[i] : '?';
    kept[text.len] = '\0';
    *at += text.len + 1;
    return kept;
}

/* Whole items of argv, as many as fit. */
static void keep_argv(struct wv_process *p, char *at, struct wv_strv argv)
{
    struct wv_str item;
    uint32_t len = 0;

    for (struct wv_strv left = argv; wv_strv_next(&left, &item);) {
        if (len + 4 + item.len > ARGV_KEPT)
            break;
        len += 4 + item.len;
        p->argv_count++;
    }
    p->argv = (uint8_t *)at;
    p->argv_len = len;
    memcpy(at, argv.ptr, len);
}

static int fill_record(struct wv_process *p, const struct wv_msg_START *s,
                       const struct wv_user *user, struct wv_err *err)
{
    struct wv_str cwd = s->cwd.len > 0 ? s->cwd : wv_str(WORKSPACE);
    uint32_t argv = s->argv.len < ARGV_KEPT ? s->argv.len : ARGV_KEPT;
    char *at =
        malloc(s->key.len + s->tag.len + cwd.len + sizeof user->name + argv + 4u);

    if (at == NULL)
        return wv_fail_errno(err, "start", "allocating");
    p->key = keep_text(&at, s->key);
    p->tag = keep_text(&at, s->tag);
    p->cwd = keep_text(&at, cwd);
    p->user = keep_text(&at, wv_str(user->name));
    keep_argv(p, at, s->argv);
    p->recipe = s->key.len > 0 ? recipe_of(s) : 0;
    p->flags = s->flags;
    p->keep_ms = s->keep_ms;
    p->output_max = s->output;
    p->cpu_ms = s->cpu_ms;
    p->started_us = wv_now_us();
    p->started_ms = wv_clock_us(CLOCK_REALTIME) / 1000u;
    if (s->timeout_ms > 0 && s->timeout_ms < UINT64_MAX / 2000u)
        p->wall_at = p->started_us + s->timeout_ms * 1000u;
    wv_log_init(&p->log, s->log_head, s->log_tail, &p->agent->log_bytes, WV_LOG_TOTAL);
    return 0;
}

static int take_stdio(struct wv_process *p, struct wv_stdio *io)
{
    int first = (p->flags & WV_START_PTY) != 0 ? WV_SOURCE_PTY : WV_SOURCE_STDOUT;

    wv_input_init(p, wv_fd_take(&io->in));
    if (wv_output_init(p, 0, (uint8_t)first, wv_fd_take(&io->out)) < 0)
        return -1;
    return wv_output_init(p, 1, WV_SOURCE_STDERR, wv_fd_take(&io->err));
}

static int start_process(struct wv_process *p, const struct wv_msg_START *start,
                         struct wv_err *err)
{
    WV_AUTO(wv_stdio_drop)
    struct wv_stdio io = {
        -1, -1, -1, {-1, -1, -1}
    };
    struct wv_user user;
    char name[65];
    int rc;

    if (wv_str_copy(start->user, name, sizeof name) < 0)
        return invalid(err, "user", "user has a NUL byte");
    if ((rc = wv_user_find(name, &user, err)) < 0 ||
        (rc = fill_record(p, start, &user, err)) < 0 ||
        (rc = wv_stdio_make(&io, start, &user, err)) < 0)
        return rc;
    if ((rc = give_order(p, start, &user, &io, err)) < 0)
        return rc;
    if (take_stdio(p, &io) < 0)
        return wv_fail_errno(err, "start", "watching its output");
    return 0;
}

static struct wv_process *find_key(struct wv_agent *agent, struct wv_str key)
{
    struct wv_process *p = agent->processes;

    if (key.len == 0)
        return NULL;
    while (p != NULL &&
           (strlen(p->key) != key.len || memcmp(p->key, key.ptr, key.len) != 0))
        p = p->next;
    return p;
}

static void join(struct wv_process *p, struct wv_conn *conn, uint32_t stream,
                 uint32_t flags, struct wv_err *err)
{
    struct wv_follower *f = wv_follow(p, conn, stream, WV_MSG_START, err);

    if (f == NULL) {
        wv_conn_error(conn, stream, err, NULL);
        return;
    }
    f->output = f->lossless = (flags & WV_START_FOLLOW) != 0;
    f->owner = (flags & WV_START_OWNED) != 0;
    if (p->state != WV_PROCESS_STARTING)
        wv_follow_started(p);
}

void wv_process_start(struct wv_conn *conn, uint32_t stream,
                      const struct wv_msg_START *start)
{
    struct wv_agent *agent = conn->agent;
    struct wv_process *p = find_key(agent, start->key);
    struct wv_err err = {0};

    if (p != NULL && p->recipe != recipe_of(start)) {
        wv_fail(&err, WV_ECONFLICT, "start", "the key was used for another command");
        snprintf(err.field, sizeof err.field, "key");
        wv_conn_error(conn, stream, &err, NULL);
        return;
    }
    if (p == NULL) {
        p = wv_process_add(agent, &err);
        if (p != NULL && start_process(p, start, &err) < 0) {
            wv_process_remove(p);
            p = NULL;
        }
        if (p == NULL) {
            wv_conn_error(conn, stream, &err, NULL);
            return;
        }
    }
    join(p, conn, stream, start->flags, &err);
    wv_process_check(p);
}
