/* files.c - file requests of the session protocol
 *
 * SPDX-License-Identifier: MIT */
#include "guest/files.h"

#include <errno.h>
#include <stdlib.h>

#include "guest/entry.h"
#include "guest/list.h"
#include "guest/put.h"
#include "guest/remove.h"
#include "guest/task.h"

#define QUICK 256u /* names that are listed without a worker: some 0.3 ms */

/* Who asks and about what. 0, or -1 and answered. */
static int read_request(struct wv_task *task, struct wv_str path, struct wv_str cwd,
                        struct wv_str user)
{
    struct wv_request *req = &task->req;
    struct wv_err err;
    char name[65];

    if (wv_str_copy(user, name, sizeof name) < 0)
        return wv_request_fail(req, WV_EINVALID, "user", "", "not a user name");
    if (wv_user_find(name, &req->user, &err) < 0)
        return wv_request_err(req, &err);
    if (path.len == 0)
        return wv_request_fail(req, WV_EINVALID, "path", "", "the path is empty");
    if (wv_path_make(&req->path, path, cwd, req->user.home, &err) < 0) {
        req->path.text[0] = '\0';
        return wv_request_err(req, &err);
    }
    return wv_task_assume(task);
}

/* --- lists and trees ------------------------------------------------------------ */

static void list_in_worker(struct wv_request *req, const void *arg)
{
    wv_list(req, arg, 0);
}

static void list(struct wv_task *task, const struct wv_msg_LIST *msg)
{
    struct wv_list list = {
        .after = msg->after,
        .depth = msg->depth > 0 ? msg->depth : 1,
        .limit = msg->limit > 0 && msg->limit < WV_LIST_MAX ? msg->limit : WV_LIST_MAX,
    };
    int status;

    if (read_request(task, msg->path, msg->cwd, msg->user) < 0)
        return;
    if (wv_glob_init(&list.glob, msg->glob.ptr, msg->glob.len) < 0) {
        wv_user_restore();
        wv_request_fail(&task->req, WV_EINVALID, "glob", "", "the pattern is too long");
        return;
    }
    status = wv_list(&task->req, &list, QUICK);
    wv_user_restore();
    if (status > 0) {
        wv_buf_eat(&task->req.answers, wv_buf_len(&task->req.answers));
        wv_task_work(task, list_in_worker, &list);
    }
}

static void remove_entry(struct wv_task *task, const struct wv_msg_REMOVE *msg)
{
    int status;

    if (read_request(task, msg->path, msg->cwd, msg->user) < 0)
        return;
    status = wv_remove_one(&task->req, msg);
    wv_user_restore();
    if (status > 0)
        wv_task_work(task, wv_remove_tree, NULL);
}

/* --- writing -------------------------------------------------------------------- */

static void put(struct wv_task *task, const struct wv_msg_PUT *msg)
{
    int status;

    if (read_request(task, msg->path, msg->cwd, msg->user) < 0)
        return;
    task->put = malloc(sizeof *task->put);
    if (task->put == NULL) {
        wv_user_restore();
        wv_request_fail(&task->req, WV_ELIMIT, "", "memory", "out of memory");
        return;
    }
    status = wv_put_open(task->put, &task->req, msg);
    wv_user_restore();
    if (status < 0)
        wv_task_drop_put(task);
}

static void put_data(struct wv_task *task, struct wv_str data)
{
    int status;

    /* What came behind an error or behind PUT_END is of no use. */
    if (task->put == NULL || task->child.pid != 0)
        return;
    status = wv_put_write(task->put, &task->req, data);
    if (status < 0)
        wv_task_drop_put(task);
    else
        wv_chan_consumed(&task->conn->chan, task->stream, data.len);
}

static void commit(struct wv_task *task)
{
    wv_user_assume(&task->req.user);
    wv_put_commit(task->put, &task->req);
    wv_user_restore();
    free(task->put);
    task->put = NULL;
}

static void synced(struct wv_task *task, int status)
{
    if (status != 0) {
        errno = status;
        wv_request_errno(&task->req, "path");
        wv_task_drop_put(task);
    } else {
        commit(task);
    }
    wv_task_pump(task);
}

static void put_end(struct wv_task *task)
{
    if (task->put == NULL || task->child.pid != 0)
        return;
    if (wv_put_must_sync(task->put))
        wv_task_sync(task, task->put->fd, synced);
    else
        commit(task);
}

/* --- requests ------------------------------------------------------------------- */

static const char *op_of(uint8_t type)
{
    switch (type) {
    case WV_MSG_OPEN_FILE:
        return "read";
    case WV_MSG_STAT:
        return "stat";
    case WV_MSG_LIST:
        return "list";
    case WV_MSG_PUT:
        return "write";
    case WV_MSG_MKDIR:
        return "mkdir";
    case WV_MSG_RENAME:
        return "rename";
    case WV_MSG_REMOVE:
        return "remove";
    default:
        return NULL;
    }
}

static void begin(struct wv_task *task, const struct wv_event *event)
{
    const union wv_msg *msg = &event->msg;
    struct wv_request *req = &task->req;

    switch (event->type) {
    case WV_MSG_LIST:
        list(task, &msg->LIST);
        return;
    case WV_MSG_PUT:
        put(task, &msg->PUT);
        return;
    case WV_MSG_REMOVE:
        remove_entry(task, &msg->REMOVE);
        return;
    case WV_MSG_OPEN_FILE:
        if (read_request(task, msg->OPEN_FILE.path, msg->OPEN_FILE.cwd,
                         msg->OPEN_FILE.user) < 0)
            return;
        wv_entry_open(req);
        break;
    case WV_MSG_STAT:
        if (read_request(task, msg->STAT.path, msg->STAT.cwd, msg->STAT.user) < 0)
            return;
        wv_entry_stat(req, msg->STAT.follow);
        break;
    case WV_MSG_MKDIR:
        if (read_request(task, msg->MKDIR.path, msg->MKDIR.cwd, msg->MKDIR.user) < 0)
            return;
        wv_entry_mkdir(req, &msg->MKDIR);
        break;
    case WV_MSG_RENAME:
        if (read_request(task, msg->RENAME.path, msg->RENAME.cwd, msg->RENAME.user) < 0)
            return;
        wv_entry_rename(req, &msg->RENAME);
        break;
    default:
        return;
    }
    wv_user_restore();
}

void wv_files_handle(struct wv_conn *conn, struct wv_event *event)
{
    const char *op = op_of(event->type);
    struct wv_task *task = event->user;

    if (op != NULL) {
        task = wv_task_new(conn, event->stream, op);
        if (task != NULL) {
            begin(task, event);
            wv_task_pump(task);
        }
        return;
    }
    if (task == NULL)
        return;
    switch (event->type) {
    case WV_MSG_PUT_DATA:
        put_data(task, event->msg.PUT_DATA.data);
        break;
    case WV_MSG_PUT_END:
        put_end(task);
        break;
    case WV_MSG_CANCEL:
        wv_task_cancel(task);
        return;
    default:
        return;
    }
    wv_task_pump(task);
}

/* The task of the i-th stream, or NULL. */
static struct wv_task *task_at(const struct wv_conn *conn, size_t i)
{
    const struct wv_stream *stream = &conn->chan.streams[i];

    return stream->id != 0 && op_of(stream->opener) != NULL ? stream->user : NULL;
}

void wv_files_more(struct wv_conn *conn)
{
    for (size_t i = 0; conn->chan.nstreams > 0 && i < WV_STREAMS; i++)
        if (task_at(conn, i) != NULL)
            wv_task_pump(task_at(conn, i));
}

void wv_files_drop(struct wv_conn *conn)
{
    for (size_t i = 0; i < WV_STREAMS; i++)
        if (task_at(conn, i) != NULL)
            wv_task_lost(task_at(conn, i));
}
