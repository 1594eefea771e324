/* task.c - a file request under way, and its worker
 *
 * SPDX-License-Identifier: MIT */
#include "guest/task.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/put.h"

#define KEPT 3                      /* the one descriptor that a worker keeps */
#define OUT_ENOUGH (WV_OUT_MAX / 2) /* waiting to be sent: answers come after that */

static void finish(struct wv_task *task);

struct wv_task *wv_task_new(struct wv_conn *conn, uint32_t stream, const char *op)
{
    struct wv_task *task = malloc(sizeof *task);
    struct wv_err err;

    if (task == NULL) {
        errno = ENOMEM;
        wv_fail_errno(&err, op, "allocating");
        wv_conn_error(conn, stream, &err, "memory");
        return NULL;
    }
    wv_request_init(&task->req, op);
    task->agent = conn->agent;
    task->conn = conn;
    task->stream = stream;
    task->cancelled = 0;
    task->child.pid = 0;
    task->watch = (struct wv_watch){.fd = -1};
    task->after = NULL;
    task->put = NULL;
    wv_chan_stream(&conn->chan, stream)->user = task;
    return task;
}

int wv_task_assume(struct wv_task *task)
{
    if (wv_user_assume(&task->req.user) == 0)
        return 0;
    return wv_request_fail(&task->req, WV_EDENIED, "user", "",
                           "not a user of this sandbox");
}

void wv_task_drop_put(struct wv_task *task)
{
    if (task->put == NULL)
        return;
    if (wv_user_assume(&task->req.user) == 0) {
        wv_put_abort(task->put, &task->req);
        wv_user_restore();
    }
    free(task->put);
    task->put = NULL;
}

static void hang_up(struct wv_task *task)
{
    if (task->watch.fd < 0)
        return;
    wv_watch_set(task->agent, &task->watch, 0);
    wv_fd_drop(&task->watch.fd);
}

/* --- answers -------------------------------------------------------------------- */

/* Send the first answer. 1: sent, 0: no room now. */
static int send_first(struct wv_task *task)
{
    struct wv_buf *answers = &task->req.answers;
    const uint8_t *head = wv_buf_ptr(answers);
    size_t len = wv_buf_len(answers);
    size_t size = len < WV_ANSWER_HEAD ? len : wv_get32(head);
    const struct wv_msg_def *def = len < WV_ANSWER_HEAD ? NULL : wv_msg_def(head[4]);
    int *fd = def != NULL && def->type == WV_MSG_FILE ? &task->req.fd : NULL;
    union wv_msg msg;
    int rc;

    if (def == NULL || size > len - WV_ANSWER_HEAD ||
        wv_msg_get(def->type, head + WV_ANSWER_HEAD, size, &msg, NULL) < 0) {
        task->conn->broken = 1;
        return 0;
    }
    if (wv_buf_len(&task->conn->chan.out) > OUT_ENOUGH)
        return 0;
    rc = wv_conn_send(task->conn, task->stream, def->type, &msg, fd != NULL ? *fd : -1);
    if (rc < 0)
        return 0;
    if (fd != NULL)
        *fd = -1;
    wv_buf_eat(answers, WV_ANSWER_HEAD + size);
    if (def->next == WV_GONE)
        task->conn = NULL;
    return 1;
}

void wv_task_pump(struct wv_task *task)
{
    while (task->conn != NULL && !task->conn->broken &&
           wv_buf_len(&task->req.answers) > 0)
        if (!send_first(task))
            break;
    if (task->watch.fd >= 0)
        wv_watch_set(task->agent, &task->watch,
                     wv_buf_len(&task->req.answers) == 0 ? EPOLLIN : 0);
    finish(task);
}

/* Free the task if nothing is left to wait for. */
static void finish(struct wv_task *task)
{
    if (task->conn != NULL)
        return;
    hang_up(task);
    if (task->child.pid != 0)
        return;
    wv_task_drop_put(task);
    wv_request_fini(&task->req);
    free(task);
}

/* --- the end -------------------------------------------------------------------- */

static void answer_cancelled(struct wv_task *task)
{
    hang_up(task);
    wv_buf_eat(&task->req.answers, wv_buf_len(&task->req.answers));
    wv_fd_drop(&task->req.fd);
    wv_task_drop_put(task);
    wv_request_fail(&task->req, WV_ECANCELLED, "", "", "cancelled");
    wv_task_pump(task);
}

void wv_task_cancel(struct wv_task *task)
{
    task->cancelled = 1;
    if (task->child.pid != 0)
        kill(task->child.pid, SIGKILL); /* the rest when it can do no more */
    else
        answer_cancelled(task);
}

void wv_task_lost(struct wv_task *task)
{
    if (task->child.pid != 0)
        kill(task->child.pid, SIGKILL);
    task->conn = NULL;
    finish(task);
}

static void ended(struct wv_child *child, int status, const struct rusage *usage)
{
    struct wv_task *task = WV_OUTER(child, struct wv_task, child);

    (void)usage;
    child->pid = 0;
    if (task->conn == NULL)
        finish(task);
    else if (task->cancelled)
        answer_cancelled(task);
    else if (task->after != NULL)
        task->after(task, WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
    /* Otherwise its last answers are in the socket, and its end follows them. */
}

static void ready(struct wv_watch *watch, uint32_t events)
{
    struct wv_task *task = WV_OUTER(watch, struct wv_task, watch);
    uint8_t *room = wv_buf_room(&task->req.answers, WV_BATCH_MAX);
    ssize_t n = 0;

    (void)events;
    if (room != NULL)
        n = recv(watch->fd, room, WV_BATCH_MAX, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        wv_buf_added(&task->req.answers, (size_t)n);
    } else {
        hang_up(task);
        if (!task->cancelled)
            wv_request_fail(&task->req, WV_EFAILED, "", "killed",
                            "its worker was killed");
    }
    wv_task_pump(task);
}

/* --- workers -------------------------------------------------------------------- */

/* In the fork: the limits of the session's own programs, no descriptor but this one,
 * and, for good, the user's ids. */
static void settle(const struct wv_task *task, int fd)
{
    const struct wv_user *user = &task->req.user;
    struct rlimit files;

    for (int i = 0; i < task->agent->nworks; i++)
        (void)!write(task->agent->works[i], "0\n", 2);
    if (fd != KEPT && dup2(fd, KEPT) < 0)
        _exit(errno);
    if (syscall(SYS_close_range, KEPT + 1, ~0u, 0) < 0)
        for (int i = KEPT + 1; i < (int)sysconf(_SC_OPEN_MAX); i++)
            close(i);
    prctl(PR_SET_NAME, "wovyr-files");
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    /* Groups are refused where one id is all there is: then there are none to keep. */
    if ((syscall(SYS_setgroups, (size_t)user->ngroups, user->groups) < 0 &&
         errno != EPERM) ||
        syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
        syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
        _exit(errno);
    prctl(PR_SET_DUMPABLE, 0);
}

void wv_task_work(struct wv_task *task,
                  void (*run)(struct wv_request *req, const void *arg), const void *arg)
{
    WV_AUTO(wv_fd_drop) int ours = -1;
    WV_AUTO(wv_fd_drop) int theirs = -1;
    struct wv_err err;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        wv_request_errno(&task->req, "");
        return;
    }
    ours = pair[0];
    theirs = pair[1];
    task->child.ended = ended;
    pid = wv_child_fork(task->agent, &task->child, &err);
    if (pid == 0) {
        settle(task, theirs);
        task->req.sock = KEPT;
        run(&task->req, arg);
        _exit(wv_request_flush(&task->req) < 0);
    }
    if (pid < 0) {
        wv_request_err(&task->req, &err);
        return;
    }
    task->watch = (struct wv_watch){.ready = ready, .fd = wv_fd_take(&ours)};
}

void wv_task_sync(struct wv_task *task, int fd,
                  void (*after)(struct wv_task *task, int status))
{
    struct wv_err err;
    pid_t pid;

    task->after = after;
    task->child.ended = ended;
    pid = wv_child_fork(task->agent, &task->child, &err);
    if (pid == 0) {
        settle(task, fd);
        _exit(fsync(KEPT) < 0 ? errno : 0);
    }
    if (pid < 0)
        wv_request_err(&task->req, &err);
}
