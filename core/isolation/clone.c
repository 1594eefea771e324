/* clone.c - new processes by clone3
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/clone.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

long wv_clone(uint64_t flags)
{
    struct clone_args args = {
        .flags = flags | CLONE_CLEAR_SIGHAND,
        .exit_signal = SIGCHLD,
    };

    return syscall(SYS_clone3, &args, sizeof args);
}

/* The system call without a function around it: the child would overwrite the return
 * address of a frame that it leaves. Returns a negative errno. */
#if defined __x86_64__
#define BORROWED_MEMORY (CLONE_VM | CLONE_VFORK)
static inline __attribute__((always_inline)) long clone_here(struct clone_args *args)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(args), "S"(sizeof *args)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined __aarch64__
#define BORROWED_MEMORY (CLONE_VM | CLONE_VFORK)
static inline __attribute__((always_inline)) long clone_here(struct clone_args *args)
{
    register long number __asm__("x8") = SYS_clone3;
    register long result __asm__("x0") = (long)args;
    register long size __asm__("x1") = sizeof *args;

    __asm__ volatile("svc 0" : "+r"(result) : "r"(number), "r"(size) : "memory", "cc");
    return result;
}
#else
#define BORROWED_MEMORY 0
static inline __attribute__((always_inline)) long clone_here(struct clone_args *args)
{
    long result = syscall(SYS_clone3, args, sizeof *args);

    return result < 0 ? -errno : result;
}
#endif

/* Not inlined: this frame stays untouched below the one that the child runs in,
 * whatever the compiler would like to do in the caller's. */
static __attribute__((noinline)) long borrow(struct clone_args *args,
                                             void (*child)(void *arg), void *arg)
{
    long pid = clone_here(args);

    if (pid == 0) {
        child(arg);
        _exit(127);
    }
    return pid;
}

long wv_clone_borrow(uint64_t flags, int *pidfd, int cgroup, void (*child)(void *arg),
                     void *arg)
{
    struct clone_args args = {
        .flags = flags | BORROWED_MEMORY | CLONE_CLEAR_SIGHAND | CLONE_PIDFD,
        .exit_signal = SIGCHLD,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
    };
    long pid;

    if (cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup;
    }
    pid = borrow(&args, child, arg);
    if (pid >= 0)
        return pid;
    errno = (int)-pid;
    return -1;
}
