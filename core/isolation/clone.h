/* clone.h - new processes by clone3
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_CLONE_H
#define WV_ISOLATION_CLONE_H

#include <linux/sched.h> /* CLONE_* */
#include <stdint.h>
#include <sys/types.h>

/* All have SIGCHLD as exit signal, and in the child every signal handler is the
 * default. */

/* As fork: returns twice, 0 in the child. */
long wv_clone(uint64_t flags);

/* As vfork: the child runs in our memory, on our stack, while we wait until it becomes
 * another program or ends. Not copying the memory saves a third of a launch. `child`
 * may change only what is its own, and must not return. cgroup: a cgroup2 directory to
 * be born in, or -1. Returns the child's pid and *pidfd, or -1 with errno. */
long wv_clone_borrow(uint64_t flags, int *pidfd, int cgroup, void (*child)(void *arg),
                     void *arg);

#endif
