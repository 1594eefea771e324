/* process.c - what neither clone nor exec resets in a process
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/jail.h"

#define OOM_PREFERENCE                                                                 \
    "200" /* in a shortage of the whole host, before its own programs */
#define TIMER_SLACK_NS 50000
#define FIRST_SPARE_FD 64 /* above every number that is given out */
#define LIFELINE_FD 3
#define WORKS_FD 4

/* As many CPUs as the quota is worth, so that programs which count CPUs see the truth.
 * Beginning with the one we are on, to which the scheduler has just brought us as the
 * least busy: moving to another would cost more than all else here. */
static int set_cpus(const struct wv_jail *jail, struct wv_err *err)
{
    unsigned want = (jail->plan->cpu_milli + 999) / 1000;
    cpu_set_t all, mine;

    if (want == 0)
        return 0;
    if (sched_getaffinity(0, sizeof all, &all) < 0)
        return wv_fail_errno(err, "process", "reading the affinity");
    if (want >= (unsigned)CPU_COUNT(&all))
        return 0;
    CPU_ZERO(&mine);
    for (unsigned cpu = (unsigned)sched_getcpu(); want > 0; cpu++)
        if (CPU_ISSET(cpu % CPU_SETSIZE, &all)) {
            CPU_SET(cpu % CPU_SETSIZE, &mine);
            want--;
        }
    if (sched_setaffinity(0, sizeof mine, &mine) < 0)
        return wv_fail_errno(err, "process", "setting the affinity");
    return 0;
}

int wv_process_reset(struct wv_jail *jail, struct wv_err *err)
{
    unsigned long none = 0;

    setsid(); /* no controlling terminal; as PID 1 it may lead one already */
    /* The launcher ignores no signal, but blocks one. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
    return set_cpus(jail, err);
}

static int write_file(const char *path, const char *text, size_t len)
{
    WV_AUTO(wv_fd_drop) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd < 0 ? -1 : wv_fd_write_all(fd, text, len);
}

void wv_process_prepare(void)
{
    static const struct sched_param lowest = {0};
    /* Not sigaction: the C library keeps some of its numbers for itself. */
    struct {
        unsigned long handler, flags, restorer, mask[2];
    } fresh = {0};

    for (int sig = 1; sig <= 64; sig++)
        syscall(SYS_rt_sigaction, sig, &fresh, NULL, sizeof(uint64_t));
    /* Lowering a niceness that was inherited may be refused; then all is only slower.
     */
    setpriority(PRIO_PROCESS, 0, 0);
    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &lowest);
    syscall(SYS_ioprio_set, 1, 0, 0); /* this process, no class */
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    umask(022);
    write_file("/proc/self/coredump_filter", "0", 1);
}

int wv_process_mark(struct wv_jail *jail, struct wv_err *err)
{
    (void)jail;
    /* EACCES: a higher preference was inherited and cannot be lowered. Fine. */
    if (write_file("/proc/self/oom_score_adj", OOM_PREFERENCE,
                   sizeof OOM_PREFERENCE - 1) < 0 &&
        errno != EACCES)
        return wv_fail_errno(err, "process", "oom_score_adj");
    return 0;
}

int wv_process_identity(struct wv_jail *jail, struct wv_err *err)
{
    if (jail->user >= 0 && setns(jail->user, CLONE_NEWUSER) < 0)
        return wv_fail_errno(err, "user", "entering the user namespace");
    /* Where the outer namespace maps a single id, groups cannot be dropped at all. */
    if (syscall(SYS_setgroups, 0, NULL) < 0 &&
        !(errno == EPERM && jail->template->single))
        return wv_fail_errno(err, "user", "dropping groups");
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        return wv_fail_errno(err, "user", "becoming root of the namespace");
    return 0;
}

int wv_process_keyring(struct wv_jail *jail, struct wv_err *err)
{
    (void)jail;
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 &&
        errno != ENOSYS)
        return wv_fail_errno(err, "process", "session keyring");
    return 0;
}

/* Move a descriptor out of the way of the numbers that are about to be given out. */
static int lift(int *fd)
{
    int spare = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_SPARE_FD);

    if (spare >= 0)
        *fd = spare;
    return spare;
}

static int place(int from, int to, int flags, struct wv_err *err)
{
    if (dup3(from, to, flags) < 0)
        return wv_fail_errno(err, "files", "descriptor %d", to);
    return 0;
}

static int lift_all(struct wv_jail *jail)
{
    int status = lift(&jail->lifeline);

    for (unsigned i = 0; status >= 0 && i < jail->plan->works; i++)
        status = lift(&jail->works[i]);
    if (status >= 0)
        status = lift(&jail->report);
    return status < 0 ? status : lift(&jail->image);
}

int wv_process_files(struct wv_jail *jail, struct wv_err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int status, next = WORKS_FD;
    struct stat seen;

    if (null < 0 || fstat(null, &seen) < 0 || !S_ISCHR(seen.st_mode) ||
        seen.st_rdev != makedev(1, 3))
        return wv_fail(err, WV_EUNSUPPORTED, "files", "/dev/null is not the device");
    if (lift_all(jail) < 0)
        return wv_fail_errno(err, "files", "moving descriptors");
    status = place(jail->lifeline, LIFELINE_FD, 0, err);
    for (int fd = 0; status == 0 && fd <= 2; fd++)
        status = place(null, fd, 0, err);
    for (unsigned i = 0; status == 0 && i < jail->plan->works; i++)
        status = place(jail->works[i], next++, 0, err);
    if (status == 0)
        status = place(jail->report, next, O_CLOEXEC, err);
    if (status == 0) {
        jail->report = next++;
        status = place(jail->image, next, O_CLOEXEC, err);
    }
    if (status < 0)
        return status;
    jail->image = next++;
    if (syscall(SYS_close_range, next, ~0u, 0) < 0)
        return wv_fail_errno(err, "files", "closing the others");
    return 0;
}

int wv_process_exec(struct wv_jail *jail, struct wv_err *err)
{
    static char name[] = "wovyr-agent";
    char *argv[] = {name, NULL};
    char *envp[] = {NULL, NULL};
#ifdef WV_TEST
    char omit[32];

    /* The agent's own protections, Landlock and seccomp, are left out by the agent. */
    snprintf(omit, sizeof omit, "WOVYR_OMIT=%u", (unsigned)jail->plan->omit);
    if (jail->plan->omit != 0)
        envp[0] = omit;
#endif
    syscall(SYS_execveat, jail->image, "", argv, envp, AT_EMPTY_PATH);
    return wv_fail_errno(err, "exec", "the agent");
}
