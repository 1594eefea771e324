/* task.h - a file request under way, seen from the agent's loop
 *
 * Theory of operation. Most requests are answered before their message has been
 * handled. The others have a task, which belongs to their stream: an upload that goes
 * on, answers that wait for room on the connection, or a worker. A worker is a fork
 * that has taken the user's real ids; it does what may take long, sends its answers in
 * batches over a socket pair, and waits there when the connection is slow. CANCEL kills
 * it, and is answered when it is gone. The task is freed when its stream is closed and
 * its worker is reaped.
 *
 *   agent --fork--> worker --answers--> agent --messages--> host
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_TASK_H
#define WV_GUEST_TASK_H

#include "guest/conn.h"
#include "guest/request.h"

struct wv_put;

struct wv_task {
    struct wv_request req;
    struct wv_agent *agent;
    struct wv_conn *conn; /* NULL: answered, or nobody is there any more */
    uint32_t stream;
    uint8_t cancelled;
    struct wv_child child; /* pid 0: no worker */
    struct wv_watch watch; /* its socket, owned; fd -1: closed */
    void (*after)(struct wv_task *task, int status); /* its end, without a socket */
    struct wv_put *put;                              /* owned */
};

/* A task for a stream that was just opened. NULL: out of memory, which was answered. */
struct wv_task *wv_task_new(struct wv_conn *conn, uint32_t stream, const char *op);

/* Do run(req, arg) in a worker, which may answer by req. */
void wv_task_work(struct wv_task *task,
                  void (*run)(struct wv_request *req, const void *arg),
                  const void *arg);

/* Call after(task, errno) when fd is on its disk. */
void wv_task_sync(struct wv_task *task, int fd,
                  void (*after)(struct wv_task *task, int status));

/* What was being written and did not appear yet leaves nothing. */
void wv_task_drop_put(struct wv_task *task);

/* Send what there is and fits, and free the task when it is over. */
void wv_task_pump(struct wv_task *task);

void wv_task_cancel(struct wv_task *task);
void wv_task_lost(struct wv_task *task); /* its connection is gone */

/* Take the user's rights; -1 (answered) when the kernel refused any of them, because
 * then the agent would act with its own. Give them back with wv_user_restore. */
int wv_task_assume(struct wv_task *task);

#endif
