/* tree.h - who descends from whom, by /proc
 *
 * Readable by PID 1 and by exec parents. One pass is a picture that is already old:
 * callers that must be sure repeat it until nothing is left.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_TREE_H
#define WV_GUEST_TREE_H

#include <stdint.h>
#include <sys/types.h>

struct wv_tree_count {
    unsigned members, alive; /* alive: not a zombie */
    uint64_t cpu_us;         /* of the members, with what they waited for */
};

/* Send signal to every descendant of this process (0: only count); with group not 0
 * only to those of that process group. */
struct wv_tree_count wv_tree_signal(int signal, pid_t group);

/* Kill every child of this process that is not one of ours, and its descendants. */
struct wv_tree_count wv_tree_strangers(int (*ours)(void *arg, pid_t pid), void *arg);

#endif
