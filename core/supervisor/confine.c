/* confine.c - giving rights up: what a role does not need, it does not keep
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int wv_confine_caps(uint64_t keep, struct wv_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct have[2], want[2];

    if (syscall(SYS_capget, &head, have) < 0)
        return wv_fail_errno(err, "confine", "reading capabilities");
    for (unsigned cap = 0; cap < 64; cap++)
        if ((keep >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL)
                break; /* past the last one of this kernel */
            if (errno != EPERM || (have[0].permitted & 1u << CAP_SETPCAP) != 0)
                return wv_fail_errno(err, "confine", "dropping capability %u", cap);
        }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        uint32_t mask = (uint32_t)(keep >> 32 * i) & have[i].permitted;

        want[i] = (struct __user_cap_data_struct){.effective = mask, .permitted = mask};
    }
    if (syscall(SYS_capset, &head, want) < 0)
        return wv_fail_errno(err, "confine", "setting capabilities");
    return 0;
}

/* --- system calls ------------------------------------------------------------ */

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "this machine's audit architecture is not known here"
#endif

/* What the loop does, and what the C library does for it. Anything else is EPERM: a bug
 * here must not be a crash that takes every session along, and gives an intruder
 * nothing. */
/* clang-format off */
static const int allowed[] = {
    SYS_read, SYS_write, SYS_writev, SYS_close, SYS_fcntl, SYS_recvfrom, SYS_recvmsg,
    SYS_sendto, SYS_sendmsg, SYS_socketpair, SYS_epoll_ctl, SYS_epoll_pwait,
    SYS_ppoll,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
    SYS_timerfd_settime, SYS_clock_gettime, SYS_pidfd_send_signal, SYS_waitid,
    SYS_getpid, SYS_gettid, SYS_getrandom, SYS_brk, SYS_munmap, SYS_mremap,
    SYS_madvise, SYS_futex, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_restart_syscall, SYS_exit, SYS_exit_group, SYS_tgkill, SYS_tkill,
};
/* clang-format on */

#define ALLOWED (sizeof allowed / sizeof *allowed)
#define HEAD 4
#define MAPS 5 /* mmap and mprotect: allowed unless they make code */
#define LOAD(field)                                                                    \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define LOAD_ARG(n)                                                                    \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                                 \
             (uint32_t)offsetof(struct seccomp_data, args) + 8 * (n))

int wv_confine_calls(struct wv_err *err)
{
    struct sock_filter code[HEAD + MAPS + 1 + 2 * ALLOWED + 1];
    struct sock_fprog program = {.filter = code};
    unsigned n = 0;

    code[n++] = (struct sock_filter)LOAD(arch);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)LOAD(nr);

    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0);
    code[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    code[n++] = (struct sock_filter)LOAD_ARG(2);
    code[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);

    for (size_t i = 0; i < ALLOWED; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (uint32_t)allowed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    program.len = (unsigned short)n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
        return wv_fail_errno(err, "confine", "the system call filter");
    return 0;
}
