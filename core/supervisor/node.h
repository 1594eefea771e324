/* node.h - what this machine can enforce: facts, each with the evidence that showed it
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_NODE_H
#define WV_SUPERVISOR_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The closed list of guarantees, in the order in which they are shown. */
#define WV_GUARANTEES(G)                                                               \
    G(HOST_FILES, host_files)                                                          \
    G(NETWORK, network)                                                                \
    G(UID_RANGE, uid_range)                                                            \
    G(NS_OWNERSHIP, ns_ownership)                                                      \
    G(SYSCALL_FILTER, syscall_filter)                                                  \
    G(MEMORY, memory)                                                                  \
    G(PIDS, pids)                                                                      \
    G(CPU, cpu)                                                                        \
    G(DISK, disk)                                                                      \
    G(TREE_KILL, tree_kill)                                                            \
    G(OOM_EVIDENCE, oom_evidence)                                                      \
    G(PAUSE, pause)                                                                    \
    G(CRASH_CLEANUP, crash_cleanup)

enum wv_guarantee {
#define G(SYMBOL, name) WV_HAS_##SYMBOL,
    WV_GUARANTEES(G)
#undef G
        WV_HAS,
};

enum wv_strength { WV_ABSENT, WV_WEAKER, WV_ENFORCED };

struct wv_fact {
    uint8_t strength; /* enum wv_strength */
    char evidence[151];
};

struct wv_node {
    struct wv_fact facts[WV_HAS];
};

struct wv_slots;
struct wv_slot;

void wv_fact_set(struct wv_node *node, enum wv_guarantee which,
                 enum wv_strength strength, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* In the janitor: find out, by doing. slot is one that was made, or NULL and why not.
 * */
void wv_node_probe(struct wv_node *node, const struct wv_slots *slots,
                   const struct wv_slot *slot, const struct wv_err *why);

/* Say that nothing can be opened here, and why. */
void wv_node_fail(struct wv_node *node, const struct wv_err *why);

/* As a packed list of "name=state=evidence"; returns its length. And back. */
long wv_node_pack(const struct wv_node *node, uint8_t *out, size_t room);
void wv_node_unpack(struct wv_node *node, const uint8_t *data, size_t len);

#endif
