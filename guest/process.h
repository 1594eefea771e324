/* process.h - the processes of a session: records, from START to forgotten
 *
 * Theory of operation. A process is STARTING until its parent said whether the program
 * runs, RUNNING until EXIT can be said, and then ENDED: a record and a log that is kept
 * for a while. EXIT can be said when the leader has ended, what was in its pipes at
 * that moment has been read, and the pipes are at their end or a grace is over (then a
 * background child holds them). Where we kill, it also waits for the tree to be gone.
 * An ENDED process may still have a parent and living descendants; their output goes on
 * into the log.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_PROCESS_H
#define WV_GUEST_PROCESS_H

#include "guest/conn.h"
#include "guest/log.h"
#include "guest/parent.h"

#define WV_PROCESSES_MAX 1024u
#define WV_ENDED_MAX 256u

enum wv_process_state { WV_PROCESS_STARTING, WV_PROCESS_RUNNING, WV_PROCESS_ENDED };

/* Our end of a pipe or terminal that the process writes to. */
struct wv_output {
    struct wv_watch watch; /* fd -1: at its end */
    struct wv_process *process;
    uint8_t source;
    uint8_t grown;   /* the pipe was made larger */
    uint8_t stalled; /* a lossless follower has to catch up first */
    uint64_t must;   /* bytes of this source to read before EXIT */
};

struct wv_chunk;

/* Our end of what it reads from. */
struct wv_input {
    struct wv_watch watch; /* fd -1: none, or closed */
    struct wv_chunk *first, **last;
    size_t queued;
    int end;  /* STDIN_END came: close behind the last chunk */
    int gone; /* errno for STDIN_GONE, once writing is over */
};

struct wv_process {
    struct wv_process *next;
    struct wv_agent *agent;
    enum wv_process_state state;
    uint32_t id, flags;
    pid_t pid;

    struct wv_parent *parent; /* NULL: the tree is gone, or was cut loose */
    struct wv_output out[2];
    struct wv_input in;
    struct wv_log log;
    struct wv_follower *followers;

    uint8_t leader_ended;
    uint8_t killing;     /* a kill was ordered */
    uint8_t tree_gone;   /* or given up */
    uint8_t all_dead;    /* nothing is left that could write */
    uint8_t grace_over;  /* for pipes that are held open */
    uint64_t output_max; /* 0: none */
    uint64_t cpu_ms;     /* 0: none */
    struct wv_msg_EXIT exit;
    uint64_t started_us, started_ms;

    struct wv_timer timer; /* at the soonest of: */
    uint64_t wall_at;      /* timeout */
    uint64_t parent_at;    /* a parent that did not kill is killed */
    uint64_t drain_at;     /* grace_over */
    uint64_t give_up_at;   /* EXIT without waiting for the tree */
    uint64_t forget_at;    /* of an ended one */

    uint32_t keep_ms;
    uint64_t recipe;              /* hash of START, for key */
    char *key, *tag, *user, *cwd; /* all in one block, as is argv */
    uint8_t *argv;                /* packed, perhaps cut short */
    uint32_t argv_len, argv_count;
};

/* start.c: START. */
void wv_process_start(struct wv_conn *conn, uint32_t stream,
                      const struct wv_msg_START *start);

/* requests.c: all else that the host asks of processes. */
void wv_process_handle(struct wv_conn *conn, const struct wv_event *event);
void wv_process_list_more(struct wv_conn *conn); /* room to send: go on with listings */
void wv_process_list_drop(struct wv_conn *conn, uint32_t stream); /* 0: all of conn */

/* process.c */
struct wv_process *wv_process_find(struct wv_agent *agent, uint32_t id);
struct wv_process *wv_process_add(struct wv_agent *agent, struct wv_err *err);
void wv_process_remove(struct wv_process *p); /* followers must be gone */
void wv_process_kill(struct wv_process *p, uint8_t cause, uint8_t reason,
                     uint32_t grace_ms);
void wv_process_check(struct wv_process *p);       /* something changed: EXIT? timer? */
void wv_process_swept(struct wv_agent *agent);     /* no stranger is left */
void wv_process_make_room(struct wv_agent *agent); /* the logs are near their limit */

/* From its parent. */
void wv_process_report(struct wv_process *p, const struct wv_report *report);
void wv_process_orphan(struct wv_process *p, const struct rusage *usage);

/* output.c: from pipe to log. */
int wv_output_init(struct wv_process *p, int i, uint8_t source, int fd); /* owns fd */
void wv_output_read(struct wv_output *out);
void wv_output_resume(struct wv_process *p); /* a lossless follower got further */
void wv_output_mark(struct wv_process *p); /* the leader ended: what is in the pipes? */
void wv_output_close(struct wv_output *out);

/* input.c: from STDIN to pipe. */
struct wv_follower;
void wv_input_init(struct wv_process *p, int fd);
void wv_input_add(struct wv_process *p, struct wv_follower *from, struct wv_str data);
void wv_input_end(struct wv_process *p);
void wv_input_forget(struct wv_process *p, const struct wv_follower *from);
void wv_input_close(struct wv_process *p, int why); /* errno for STDIN_GONE */

#endif
