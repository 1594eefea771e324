/* parent.c - the life of an exec parent
 *
 * SPDX-License-Identifier: MIT */
#include "guest/parent.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "guest/command.h"
#include "guest/tree.h"
#include "wire/msg.h"

#define CPU_POLL_US 100000u /* how often used cpu time is added up, at most */
#define PASS_US 1000u       /* between passes over a tree that is being killed */
#define NEVER UINT64_MAX

struct parent {
    int sock, signals;
    int held[2]; /* stdout and stderr of the leader while it lives: their end then comes
                    with its end, and wakes the agent once */
    pid_t leader;          /* 0: it was reaped */
    int leader_shot, shot; /* KILL was sent by us: to the leader, to all */
    int empty;
    uint64_t kill_at, cpu_at;
    uint64_t cpu_ms;
    struct wv_report report;
};

static void close_but(int keep)
{
    if (syscall(SYS_close_range, keep + 1, ~0u, 0) == 0 &&
        (keep == 3 || syscall(SYS_close_range, 3, keep - 1, 0) == 0))
        return;
    for (int fd = 3; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
        if (fd != keep)
            close(fd);
}

/* Descendants whose own parent died become ours. The only place that would change where
 * the kernel refuses it (gVisor): there orphans go to PID 1, whose strangers rule kills
 * them, so a command's background processes do not outlive their shell. */
static void become_reaper(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* What an heir has from its maker. */
static void settle_once(const int *works, int nworks)
{
    static const unsigned long usual[8]; /* struct sigaction of the kernel: SIG_DFL */
    sigset_t all;

    for (int i = 0; i < nworks; i++)
        (void)!write(works[i], "0\n", 2);
    prctl(PR_SET_NAME, "wovyr-exec");
    prctl(PR_SET_DUMPABLE, 0);
    /* Also what was ignored when we came to be: commands inherit that across exec. */
    for (int signal = 1; signal <= 64; signal++)
        syscall(SYS_rt_sigaction, signal, usual, NULL, 8);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

static void settle(struct parent *p)
{
    sigset_t child;

    close_but(p->sock);
    become_reaper();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    p->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

int wv_parent_pair(int *agents, int *parents)
{
    int pair[2], room = WV_ORDER_MAX / 2; /* the kernel doubles it */

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    *agents = pair[0];
    *parents = pair[1];
    return wv_fd_nonblock(pair[0]);
}

static void tell(struct parent *p, uint32_t what)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    p->report.what = what;
    p->report.cpu_us =
        (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
        (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    p->report.peak_kib = (uint32_t)usage.ru_maxrss;
    send(p->sock, &p->report, sizeof p->report, MSG_NOSIGNAL);
}

/* --- starting ------------------------------------------------------------------- */

/* Next string of what follows an order; the agent wrote it, so a bad end is a fault. */
static char *next_text(char **at, const char *end)
{
    char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

    if (nul == NULL)
        _exit(1);
    *at = nul + 1;
    return text;
}

static char **texts(char **at, const char *end, uint32_t n)
{
    char **list = calloc(n + 1u, sizeof *list);

    if (list == NULL)
        _exit(1);
    for (uint32_t i = 0; i < n; i++)
        list[i] = next_text(at, end);
    return list;
}

static uint64_t cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 1;
    return (uint64_t)CPU_COUNT(&set);
}

/* When the limit can be reached at the soonest, were all CPUs ours. */
static void plan_cpu(struct parent *p, uint64_t used_us)
{
    uint64_t left = p->cpu_ms * 1000u > used_us ? p->cpu_ms * 1000u - used_us : 0;
    uint64_t wait = left / cpus();

    p->cpu_at = wv_now_us() + (wait > CPU_POLL_US ? wait : CPU_POLL_US);
}

/* Returns in the maker with 0, and in the heir with its socket. */
static int make_heir(struct parent *p)
{
    WV_AUTO(wv_fd_drop) int agents = -1;
    WV_AUTO(wv_fd_drop) int parents = -1;
    struct wv_report report = {.what = WV_REPORT_SPARE};

    if (wv_parent_pair(&agents, &parents) == 0) {
        /* A plain fork but for its parent, which no libc call can choose. */
        report.pid = (int32_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (report.pid == 0)
            return wv_fd_take(&parents);
    }
    wv_fd_send(p->sock, &report, sizeof report, &agents, report.pid > 0, NULL);
    return 0;
}

/* Returns in the parent with 0, and in its heir with the heir's socket. */
static int start(struct parent *p)
{
    size_t room = WV_ORDER_MAX + sizeof(struct wv_order), nfds = 3, taken = 0;
    char *data =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct wv_order *order = (void *)data;
    struct wv_command command = {
        .order = order, .fds = {-1, -1, -1}
    };
    int fds[3], heir;
    ssize_t n;
    char *at;

    if (data == MAP_FAILED)
        _exit(1);
    n = wv_fd_recv(p->sock, data, room, fds, &nfds, NULL);
    if (n < (ssize_t)sizeof *order || order->kind != WV_ORDER_START)
        _exit(0); /* the agent has no use for us, or is gone */
    for (int i = 0; i < 3; i++)
        if ((order->fds & 1u << i) != 0 && taken < nfds)
            command.fds[i] = fds[taken++];
    if ((order->flags & (WV_START_MERGE | WV_START_PTY)) != 0)
        command.fds[2] = command.fds[1];
    if ((order->flags & WV_START_PTY) != 0)
        command.fds[0] = command.fds[1];
    at = data + sizeof *order;
    command.cwd = next_text(&at, data + n);
    command.argv = texts(&at, data + n, order->argc);
    command.env = texts(&at, data + n, order->envc);
    for (char **e = command.env; *e != NULL; e++)
        if (strncmp(*e, "PATH=", 5) == 0)
            command.path = *e + 5;

    p->leader = wv_command_start(&command);
    p->report.pid = p->leader;
    p->report.sys = command.sys;
    strncpy(p->report.field, command.field, sizeof p->report.field - 1);
    for (size_t i = 0; i < nfds; i++)
        if ((order->flags & WV_START_PTY) == 0 && fds[i] != command.fds[0] &&
            p->leader > 0)
            p->held[i == nfds - 1] = fds[i];
        else
            close(fds[i]);
    if (p->leader < 0) {
        tell(p, WV_REPORT_FAILED);
        _exit(0);
    }
    tell(p, WV_REPORT_STARTED);
    p->cpu_ms = order->cpu_ms;
    if (p->cpu_ms > 0)
        plan_cpu(p, 0);
    heir = order->heir;
    munmap(data, room);
    free(command.argv);
    free(command.env);
    return heir ? make_heir(p) : 0;
}

/* --- while it runs -------------------------------------------------------------- */

static void reap(struct parent *p)
{
    uint32_t what = 0;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        int ours = p->shot || (pid == p->leader && p->leader_shot);

        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !ours)
            p->report.strays++;
        if (pid == p->leader) {
            p->leader = 0;
            wv_fd_drop(&p->held[0]);
            wv_fd_drop(&p->held[1]);
            p->report.status = status;
            p->cpu_at = NEVER;
            what |= WV_REPORT_LEADER;
        }
    }
    if (pid < 0 && errno == ECHILD) {
        p->empty = 1;
        what |= WV_REPORT_EMPTY;
    }
    if (what != 0)
        tell(p, what);
}

/* While the leader is not reaped its number is its own; afterwards only the walk knows
 * whether a number is still one of ours. */
static void send_signal(struct parent *p, int signal, uint32_t to)
{
    pid_t group = p->report.pid;

    if (signal == SIGKILL && to == WV_TO_LEADER)
        p->leader_shot = 1;
    else if (signal == SIGKILL)
        p->shot = 1;
    if (to == WV_TO_TREE)
        wv_tree_signal(signal, 0);
    else if (p->leader > 0)
        kill(to == WV_TO_GROUP ? -group : p->leader, signal);
    else if (to == WV_TO_GROUP)
        wv_tree_signal(signal, group);
}

static void kill_tree(struct parent *p, uint32_t grace_ms)
{
    uint64_t at = wv_now_us() + (uint64_t)grace_ms * 1000u;

    if (grace_ms > 0) {
        wv_tree_signal(SIGTERM, 0);
        wv_tree_signal(SIGCONT, 0); /* a stopped process cannot take it */
    }
    if (at < p->kill_at)
        p->kill_at = at;
}

static void kill_pass(struct parent *p)
{
    struct wv_tree_count count;

    p->shot = 1;
    if (p->leader > 0)
        kill(-p->leader, SIGKILL); /* most of it, at once */
    count = wv_tree_signal(SIGKILL, 0);
    reap(p);
    p->kill_at = wv_now_us() + (count.alive > 0 ? PASS_US : PASS_US * 10);
}

static void add_up_cpu(struct parent *p)
{
    struct rusage usage;
    uint64_t used = wv_tree_signal(0, 0).cpu_us;

    getrusage(RUSAGE_CHILDREN, &usage);
    used += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
            (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    plan_cpu(p, used);
    if (used < p->cpu_ms * 1000u)
        return;
    p->cpu_at = NEVER;
    tell(p, WV_REPORT_CPU);
}

static void take_order(struct parent *p)
{
    struct wv_order order;
    ssize_t n = recv(p->sock, &order, sizeof order, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof order) {
        p->kill_at = 0; /* nobody is there to decide: the tree ends */
        wv_fd_drop(&p->sock);
    } else if (order.kind == WV_ORDER_SIGNAL) {
        send_signal(p, (int)order.number, order.to);
    } else if (order.kind == WV_ORDER_KILL) {
        kill_tree(p, order.number);
    }
}

static int time_left_ms(const struct parent *p)
{
    uint64_t at = p->kill_at < p->cpu_at ? p->kill_at : p->cpu_at, now;

    if (at == NEVER)
        return -1;
    now = wv_now_us();
    if (at <= now)
        return 0;
    at = (at - now + 999) / 1000;
    return at > 60000 ? 60000 : (int)at;
}

static void watch_over(struct parent *p)
{
    struct signalfd_siginfo info;

    while (!p->empty) {
        struct pollfd fds[] = {
            {p->signals, POLLIN, 0},
            {p->sock,    POLLIN, 0}
        };

        if (poll(fds, 2, time_left_ms(p)) < 0 && errno != EINTR)
            _exit(1);
        if (fds[0].revents != 0) {
            (void)!read(p->signals, &info, sizeof info);
            reap(p);
        }
        if (!p->empty && fds[1].revents != 0)
            take_order(p);
        if (!p->empty && p->kill_at <= wv_now_us())
            kill_pass(p);
        if (!p->empty && p->cpu_at <= wv_now_us())
            add_up_cpu(p);
    }
}

_Noreturn void wv_parent_main(int sock, const int *works, int nworks)
{
    struct parent p;

    settle_once(works, nworks);
    /* An heir goes on here, so that its stack is no deeper than its maker's was. */
    do {
        p = (struct parent){
            .sock = sock,
            .held = {-1, -1},
            .kill_at = NEVER,
            .cpu_at = NEVER,
        };
        settle(&p);
        sock = start(&p);
    } while (sock > 0);
    watch_over(&p);
    _exit(0);
}
