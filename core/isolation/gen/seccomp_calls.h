/* seccomp_calls.h - the system calls of a sandbox: what may be called, what may not
 *
 * On no list: ENOSYS. Calls that are judged by their arguments (clone, socket, ioctl,
 * personality, setrlimit, prlimit64) are in seccomp_gen.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_ISOLATION_GEN_SECCOMP_CALLS_H
#define WV_ISOLATION_GEN_SECCOMP_CALLS_H

/* After the default profile of the container engines. */
static const char *const allowed[] = {
    /* files */
    "open", "openat", "openat2", "creat", "close", "close_range", "read", "write",
    "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "lseek", "ftruncate", "truncate", "fallocate", "fadvise64", "readahead",
    "sync", "fsync", "fdatasync", "syncfs", "sync_file_range", "sendfile",
    "copy_file_range", "splice", "tee", "vmsplice", "flock", "fcntl", "dup", "dup2",
    "dup3", "pipe", "pipe2", "cachestat",
    /* names and attributes */
    "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access",
    "faccessat", "faccessat2", "getdents", "getdents64", "getcwd", "chdir", "fchdir",
    "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "link", "linkat", "symlink",
    "symlinkat", "readlink", "readlinkat", "rename", "renameat", "renameat2", "chmod",
    "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "umask",
    "utime", "utimes", "futimesat", "utimensat", "name_to_handle_at", "mknod",
    "mknodat", /* pipes; for devices there is no capability */
    "setxattr", "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr",
    "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr",
    "fremovexattr", "setxattrat", "getxattrat", "listxattrat", "removexattrat",
    "inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
    /* memory */
    "brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "msync", "mincore",
    "mlock", "mlock2", "munlock", "mlockall", "munlockall", "memfd_create",
    "membarrier", "pkey_alloc", "pkey_free", "pkey_mprotect", "remap_file_pages",
    "mseal", "map_shadow_stack",
    /* processes and threads; clone is judged by its flags */
    "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid",
    "kill", "tkill", "tgkill", "pidfd_open", "pidfd_send_signal", "pidfd_getfd",
    "process_mrelease", "getpid", "getppid", "gettid", "setsid", "getsid", "setpgid",
    "getpgid", "getpgrp", "set_tid_address", "set_robust_list", "get_robust_list",
    "set_thread_area", "get_thread_area", "arch_prctl", "rseq", "prctl", "futex",
    "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "seccomp",
    "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
    /* debuggers: a guest's own processes; the agent is out of reach by its image */
    "ptrace", "process_vm_readv", "process_vm_writev",
    /* identity */
    "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid",
    "setfsgid", "setgroups", "capget", "capset",
    /* signals, time, waiting */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend",
    "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "sigaltstack",
    "signalfd", "signalfd4", "pause", "alarm", "restart_syscall", "time", "times",
    "gettimeofday", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep",
    "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
    "timer_getoverrun", "timer_delete", "timerfd_create", "timerfd_settime",
    "timerfd_gettime", "poll", "ppoll", "select", "pselect6", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "epoll_ctl_old", "epoll_wait_old", "eventfd", "eventfd2", "io_setup", "io_destroy",
    "io_submit", "io_cancel", "io_getevents", "io_pgetevents",
    /* scheduling and limits; setrlimit and prlimit64 are judged apart */
    "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam",
    "sched_setparam", "sched_getscheduler", "sched_setscheduler", "sched_getattr",
    "sched_setattr", "sched_get_priority_max", "sched_get_priority_min",
    "sched_rr_get_interval", "getpriority", "setpriority", "ioprio_get", "ioprio_set",
    "getcpu", "getrlimit", "getrusage",
    /* sockets; socket and socketpair are judged by family */
    "bind", "listen", "accept", "accept4", "connect", "shutdown", "getsockname",
    "getpeername", "getsockopt", "setsockopt", "sendto", "sendmsg", "sendmmsg",
    "recvfrom", "recvmsg", "recvmmsg",
    /* System V and POSIX queues, of the sandbox's own ipc namespace */
    "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
    "shmget", "shmat", "shmdt", "shmctl", "mq_open", "mq_unlink", "mq_timedsend",
    "mq_timedreceive", "mq_notify", "mq_getsetattr",
    /* the system */
    "uname", "sysinfo", "getrandom"};

/* EPERM, as for any unprivileged user. */
static const char *const denied[] = {
    /* mounts and roots */
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr", "swapon",
    "swapoff", "quotactl", "quotactl_fd", "open_by_handle_at", "fanotify_init",
    "fanotify_mark",
    /* namespaces */
    "unshare", "setns", "sethostname", "setdomainname",
    /* keys: their namespaces are incomplete */
    "add_key", "request_key", "keyctl",
    /* wide and young kernel surfaces */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register",
    /* the machine */
    "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "acct", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime", "syslog", "vhangup", "iopl", "ioperm", "modify_ldt", "nfsservctl",
    "lookup_dcookie", "uselib",
    /* memory and identity of other processes */
    "kcmp", "process_madvise", "move_pages", "migrate_pages", "mbind", "get_mempolicy",
    "set_mempolicy", "set_mempolicy_home_node"};

/* Calls that an older libseccomp does not know. Since 424 the numbers are the same on
 * all architectures. */
static const struct {
    const char *name;
    int number;
} young[] = {
    {"pidfd_send_signal",       424},
    {"io_uring_setup",          425},
    {"io_uring_enter",          426},
    {"io_uring_register",       427},
    {"open_tree",               428},
    {"move_mount",              429},
    {"fsopen",                  430},
    {"fsconfig",                431},
    {"fsmount",                 432},
    {"fspick",                  433},
    {"pidfd_open",              434},
    {"close_range",             436},
    {"openat2",                 437},
    {"pidfd_getfd",             438},
    {"faccessat2",              439},
    {"process_madvise",         440},
    {"epoll_pwait2",            441},
    {"mount_setattr",           442},
    {"quotactl_fd",             443},
    {"landlock_create_ruleset", 444},
    {"landlock_add_rule",       445},
    {"landlock_restrict_self",  446},
    {"process_mrelease",        448},
    {"futex_waitv",             449},
    {"set_mempolicy_home_node", 450},
    {"cachestat",               451},
    {"fchmodat2",               452},
    {"map_shadow_stack",        453},
    {"futex_wake",              454},
    {"futex_wait",              455},
    {"futex_requeue",           456},
    {"mseal",                   462},
    {"setxattrat",              463},
    {"getxattrat",              464},
    {"listxattrat",             465},
    {"removexattrat",           466},
    {"open_tree_attr",          467},
};

#endif
