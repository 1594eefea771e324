/* node.c - what this machine can enforce: facts, each with the evidence that showed it
 *
 * Nothing here reads a version number. A slot was made or not, a limit file could be
 * opened or not, and what a session's child will do is done once by a child of ours.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/node.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "supervisor/slots.h"
#include "wire/msg.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

static const char *const names[WV_HAS] = {
#define G(SYMBOL, name) [WV_HAS_##SYMBOL] = #name,
    WV_GUARANTEES(G)
#undef G
};

static const char *const strengths[] = {
    [WV_ABSENT] = "absent", [WV_WEAKER] = "weaker", [WV_ENFORCED] = "enforced"};

void wv_fact_set(struct wv_node *node, enum wv_guarantee which,
                 enum wv_strength strength, const char *fmt, ...)
{
    struct wv_fact *fact = &node->facts[which];
    va_list args;

    va_start(args, fmt);
    fact->strength = (uint8_t)strength;
    vsnprintf(fact->evidence, sizeof fact->evidence, fmt, args);
    va_end(args);
}

void wv_node_fail(struct wv_node *node, const struct wv_err *why)
{
    for (int i = 0; i < WV_HAS; i++)
        wv_fact_set(node, i, WV_ABSENT, "%s: %s%s%s", why->op, why->msg,
                    why->sys ? ": " : "", why->sys ? strerror(why->sys) : "");
}

/* --- by doing ---------------------------------------------------------------- */

static int try_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("wovyr", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") == 0;
}

static int try_filter(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* Does it work in a child? 0, or the errno with which it did not. */
static int attempt(int (*deed)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(deed() ? 0 : errno > 0 && errno < 255 ? errno : 255);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 255;
    return WEXITSTATUS(status);
}

static void probe_child(struct wv_node *node)
{
    int sys = attempt(try_mounts);
    long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);

    if (sys == 0) {
        wv_fact_set(node, WV_HAS_HOST_FILES, WV_ENFORCED,
                    "mount namespace of its own, built from an allow list");
        wv_fact_set(node, WV_HAS_DISK, WV_ENFORCED, "one tmpfs of the size asked for");
    } else {
        wv_fact_set(node, WV_HAS_HOST_FILES, WV_ABSENT, "mounting in a namespace: %s",
                    strerror(sys));
        wv_fact_set(node, WV_HAS_DISK, WV_ABSENT, "mounting a tmpfs: %s",
                    strerror(sys));
    }
    sys = attempt(try_filter);
    if (sys != 0)
        wv_fact_set(node, WV_HAS_SYSCALL_FILTER, WV_ABSENT, "loading a filter: %s",
                    strerror(sys));
    else if (landlock < 1)
        wv_fact_set(node, WV_HAS_SYSCALL_FILTER, WV_ENFORCED,
                    "seccomp; no Landlock here");
    else
        wv_fact_set(node, WV_HAS_SYSCALL_FILTER, WV_ENFORCED,
                    "seccomp; Landlock ABI %ld", landlock);
}

/* --- from a slot that was made ----------------------------------------------- */

static void say_group(struct wv_node *node, const struct wv_slots *slots,
                      enum wv_guarantee which, enum wv_controller controller, int file,
                      const char *what)
{
    for (unsigned i = 0; i < slots->groups.n && file; i++)
        if ((slots->groups.at[i].has & WV_CG_BIT(controller)) != 0) {
            wv_fact_set(node, which, WV_ENFORCED, "cgroup v%d %s",
                        slots->groups.at[i].v2 ? 2 : 1, what);
            return;
        }
    wv_fact_set(node, which, WV_ABSENT, "no %s cgroup that we may make", what);
}

static void say_slot(struct wv_node *node, const struct wv_slots *slots,
                     const struct wv_slot *slot)
{
    unsigned has = slots->groups.has;
    int peak = slot->set_memory;

    wv_fact_set(node, WV_HAS_NETWORK, WV_ENFORCED,
                "network namespace with loopback only");
    wv_fact_set(node, WV_HAS_NS_OWNERSHIP, WV_ENFORCED,
                "user namespace joined last; making a namespace in it was refused");
    if (slots->ids == 0)
        wv_fact_set(node, WV_HAS_UID_RANGE, WV_ENFORCED, "leased: %u ids from %u",
                    WV_RANGE_SIZE, slot->uid_base);
    else if (slots->ids > 1)
        wv_fact_set(node, WV_HAS_UID_RANGE, WV_WEAKER,
                    "%u subordinate ids, shared by all sessions of this user",
                    slots->ids - 1);
    else
        wv_fact_set(node, WV_HAS_UID_RANGE, WV_ABSENT,
                    "one id, the user's own: no range for him in /etc/subuid");
    say_group(node, slots, WV_HAS_MEMORY, WV_CG_MEMORY, slot->set_memory, "memory");
    say_group(node, slots, WV_HAS_PIDS, WV_CG_PIDS, slot->set_pids, "pids");
    say_group(node, slots, WV_HAS_CPU, WV_CG_CPU, slot->set_cpu, "cpu");
    say_group(node, slots, WV_HAS_PAUSE, WV_CG_FREEZER,
              (has & WV_CG_BIT(WV_CG_FREEZER)) != 0, "freezer");
    say_group(node, slots, WV_HAS_OOM_EVIDENCE, WV_CG_MEMORY, peak, "memory");
    wv_fact_set(node, WV_HAS_TREE_KILL, WV_ENFORCED,
                "pid namespace: the end of its PID 1 is the end of all");
    wv_fact_set(
        node, WV_HAS_CRASH_CLEANUP, WV_ENFORCED,
        "outer pid namespace ends with the supervisor; names are swept by lock");
}

void wv_node_probe(struct wv_node *node, const struct wv_slots *slots,
                   const struct wv_slot *slot, const struct wv_err *why)
{
    memset(node, 0, sizeof *node);
    if (slot == NULL) {
        wv_node_fail(node, why);
        return;
    }
    say_slot(node, slots, slot);
    probe_child(node);
}

/* --- as text ----------------------------------------------------------------- */

long wv_node_pack(const struct wv_node *node, uint8_t *out, size_t room)
{
    char lines[WV_HAS][200];
    struct wv_str items[WV_HAS];

    for (int i = 0; i < WV_HAS; i++) {
        snprintf(lines[i], sizeof lines[i], "%s=%s=%s", names[i],
                 strengths[node->facts[i].strength], node->facts[i].evidence);
        items[i] = wv_str(lines[i]);
    }
    return wv_strv_pack(out, room, items, WV_HAS);
}

static void unpack_line(struct wv_node *node, const char *line)
{
    for (int i = 0; i < WV_HAS; i++) {
        size_t len = strlen(names[i]);
        const char *state = line + len + 1;

        if (strncmp(line, names[i], len) != 0 || line[len] != '=')
            continue;
        for (int s = WV_ABSENT; s <= WV_ENFORCED; s++) {
            size_t n = strlen(strengths[s]);

            if (strncmp(state, strengths[s], n) == 0 && state[n] == '=')
                wv_fact_set(node, i, s, "%s", state + n + 1);
        }
    }
}

void wv_node_unpack(struct wv_node *node, const uint8_t *data, size_t len)
{
    struct wv_strv list = {.ptr = (const char *)data, .len = (uint32_t)len};
    struct wv_str item;

    memset(node, 0, sizeof *node);
    list.count = WV_HAS;
    while (wv_strv_next(&list, &item)) {
        char line[200];

        if (wv_str_copy(item, line, sizeof line) == 0)
            unpack_line(node, line);
    }
}
