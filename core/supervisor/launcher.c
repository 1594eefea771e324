/* launcher.c - the role that clones sandboxes
 *
 * Theory of operation. The launcher is forked before the supervisor reads its first
 * byte, so its memory holds nothing that a guest must not see, and it is PID 1 of a pid
 * namespace, so that when it ends, however it ends, the kernel ends every sandbox.
 *
 *   supervisor --sock--> launcher (PID 1)
 *       |                   `-- clone: template launcher, one per template
 *       `------sock------------>  `-- clone: the child that becomes a session's agent
 *
 * The launcher stays in the mount namespace it was given and only makes template
 * launchers. A template launcher sits in its template's pivoted mount namespace: a
 * clone of it is most of a sandbox, and nothing of the host can be reached from it.
 * Both are a loop over two descriptors: requests on the socket, ended children on a
 * signalfd. What they share is struct launcher; what the two kinds do differently is in
 * `serve` functions.
 *
 * A session's child reports a failed step as a struct wv_err on a pipe whose read end
 * the supervisor got with LAUNCHED; end of file without a byte means that it became the
 * agent.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/clone.h"
#include "isolation/jail.h"
#include "isolation/process.h"
#include "supervisor/role.h"

#define SOCK_FD 3 /* where each launcher has its socket; below it only 0, 1 and 2 */
#define HOSTNAME "wovyr"
#define SINGLE_MAX 1000 /* an outer namespace with no more ids has none for `user` */

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

extern const char wv_agent_image[], wv_agent_image_end[];

struct child {
    pid_t pid;
    uint64_t ticket;
    uint32_t number;
    int lease; /* held as long as the child's uids may be in use */
};

struct launcher {
    int sock, signals;
    struct wv_template template;
    struct child *children;
    size_t count, room;
};

static int answer(int sock, uint32_t type, const struct wv_role_msg_head *to,
                  int32_t status, const struct wv_err *err, const int *fds, size_t nfds)
{
    struct wv_role_msg_head head = {
        .type = type,
        .number = to->number,
        .ticket = to->ticket,
        .status = status,
    };

    if (err != NULL)
        head.err = *err;
    return wv_fd_send(sock, &head, sizeof head, fds, nfds, NULL) < 0 ? -1 : 0;
}

/* The agent in memory: executable, not readable (mode 0111), which makes the kernel
 * keep the process out of reach of its sandbox's root, and never to be changed. */
static int make_image(mode_t mode, struct wv_err *err)
{
    size_t len = (size_t)(wv_agent_image_end - wv_agent_image);
    WV_AUTO(wv_fd_drop)
    int fd = memfd_create("wovyr-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    if (fd < 0 &&
        errno == EINVAL) /* before Linux 6.3 all memory files are executable */
        fd = memfd_create("wovyr-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || wv_fd_write_all(fd, wv_agent_image, len) < 0 || fchmod(fd, mode) < 0)
        return wv_fail_errno(err, "image", "putting the agent into memory");
    fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC); /* since Linux 6.3 */
    if (fcntl(fd, F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return wv_fail_errno(err, "image", "sealing the agent");
    return wv_fd_take(&fd);
}

/* How many ids our user namespace has. */
static unsigned long count_ids(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long inside, outside, n, sum = 0;

    if (map == NULL)
        return 0;
    while (fscanf(map, "%lu %lu %lu", &inside, &outside, &n) == 3)
        sum += n;
    fclose(map);
    return sum;
}

static int remember(struct launcher *self, const struct child *child)
{
    if (self->count == self->room) {
        size_t room = self->room > 0 ? self->room * 2 : 16;
        struct child *grown = realloc(self->children, room * sizeof *grown);

        if (grown == NULL)
            return -1;
        self->children = grown;
        self->room = room;
    }
    self->children[self->count++] = *child;
    return 0;
}

/* Collect what ended. The launcher proper has no list: its children are template
 * launchers, whose end the supervisor sees on their sockets, and orphans of theirs. */
static void reap(struct launcher *self)
{
    struct signalfd_siginfo seen[4];
    int status;
    pid_t pid;

    while (read(self->signals, seen, sizeof seen) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < self->count; i++) {
            struct child child = self->children[i];
            struct wv_role_msg_head to = {.number = child.number,
                                          .ticket = child.ticket};

            if (child.pid != pid)
                continue;
            self->children[i] = self->children[--self->count];
            wv_fd_drop(&child.lease);
            answer(self->sock, WV_ROLE_REAPED, &to, status, NULL, NULL, 0);
            break;
        }
}

/* The descriptors of a LAUNCH, in the order of role.h. */
static int sort_fds(struct wv_jail *jail, int *cgroup, int *lease, int *fds,
                    size_t nfds, struct wv_err *err)
{
    const struct wv_plan *plan = jail->plan;
    size_t want = 2, at = 0;

#ifndef WV_TEST
    if (!plan->mapped)
        return wv_fail(err, WV_EINVALID, "launch", "no user namespace");
#endif
    if (plan->joins > WV_JOINS_MAX || plan->works > WV_JOINS_MAX)
        return wv_fail(err, WV_EINVALID, "launch", "too many cgroups");
    want +=
        (size_t)(plan->mapped != 0) + (plan->cgroup2 != 0) + plan->joins + plan->works;
    if (nfds != want && nfds != want + 1)
        return wv_fail(err, WV_EINVALID, "launch", "%zu descriptors, expected %zu",
                       nfds, want);
    jail->lifeline = fds[at++];
    jail->net = fds[at++];
    jail->user = plan->mapped ? fds[at++] : -1;
    *cgroup = plan->cgroup2 ? fds[at++] : -1;
    for (unsigned i = 0; i < plan->joins; i++)
        jail->joins[i] = fds[at++];
    for (unsigned i = 0; i < plan->works; i++)
        jail->works[i] = fds[at++];
    *lease = nfds > at ? fds[at] : -1;
    return 0;
}

/* A sandbox's user namespace was made by the first uid of its range (so that the
 * kernel's per-user counters are its own), so its owner says where the range begins. */
static int find_base(struct wv_jail *jail, struct wv_err *err)
{
    jail->base = 0;
    if (wv_jail_omits(jail, WV_WALL_USERNS) && jail->user >= 0)
        jail->user = -1;
    if (jail->user < 0)
        return 0;
    if (ioctl(jail->user, NS_GET_OWNER_UID, &jail->base) < 0)
        return wv_fail_errno(err, "launch",
                             "asking for the range of the user namespace");
    /* Root's own would be a sandbox whose root is the host's. */
    if (jail->base == 0 && !jail->template->unprivileged)
        return wv_fail(err, WV_EINVALID, "launch", "a user namespace of root's");
    return 0;
}

static void enter_jail(void *jail)
{
    wv_jail_enter(jail);
}

static int launch(struct launcher *self, const struct wv_role_request *req, int *fds,
                  size_t nfds, struct wv_err *err)
{
    struct wv_jail jail = {
        .plan = &req->u.plan,
        .template = &self->template,
        .image = self->template.image,
    };
    WV_AUTO(wv_fd_drop) int pidfd = -1;
    WV_AUTO(wv_fd_drop) int report_in = -1;
    WV_AUTO(wv_fd_drop) int report_out = -1;
    struct child child = {.ticket = req->head.ticket, .number = req->head.number};
    int report[2], cgroup = -1, lease = -1;
    int status = sort_fds(&jail, &cgroup, &lease, fds, nfds, err);
    long pid;

    if (status == 0)
        status = find_base(&jail, err);
    if (status < 0)
        return status;
    /* The child moves descriptors about in its own table, but names them in our memory:
     * jail is its to change, fds and the rest are not. */
    if (wv_jail_omits(&jail, WV_WALL_IMAGE))
        jail.image = self->template.open_image;
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        return wv_fail_errno(err, "launch", "a pipe");
    report_out = report[0];
    report_in = jail.report = report[1];
    pid = wv_clone_borrow(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
                          &pidfd, cgroup, enter_jail, &jail);
    if (pid < 0)
        return wv_fail_errno(err, "launch", "cloning");
    child.pid = (pid_t)pid;
    child.lease = lease >= 0 ? fcntl(lease, F_DUPFD_CLOEXEC, 0) : -1;
    if ((lease >= 0 && child.lease < 0) || remember(self, &child) < 0) {
        /* The uids of a child that nobody remembers could be leased anew. */
        kill(child.pid, SIGKILL);
        waitpid(child.pid, NULL, 0);
        wv_fd_drop(&child.lease);
        return wv_fail(err, WV_ECAPACITY, "launch", "no room for another session");
    }
    status = answer(self->sock, WV_ROLE_LAUNCHED, &req->head, 0, NULL,
                    (int[]){pidfd, report_out}, 2);
    return status < 0 ? wv_fail(err, WV_ELOST, "launch", "the supervisor is gone") : 0;
}

static void launch_or_say(struct launcher *self, const struct wv_role_request *req,
                          size_t len, int *fds, size_t nfds)
{
    struct wv_err err = {0};
    int status;

    if (req->head.type != WV_ROLE_LAUNCH)
        status = wv_fail(&err, WV_EPROTOCOL, "launch", "not a request to launch");
    else if (len < offsetof(struct wv_role_request, u) + sizeof req->u.plan)
        status = wv_fail(&err, WV_ECAPACITY, "launch", "the request came incomplete");
    else
        status = launch(self, req, fds, nfds, &err);
    if (status < 0)
        answer(self->sock, WV_ROLE_LAUNCHED, &req->head, 0, &err, NULL, 0);
}

/* Requests and reaping until the socket hangs up. */
static void serve(struct launcher *self,
                  void (*handle)(struct launcher *self,
                                 const struct wv_role_request *req, size_t len,
                                 int *fds, size_t nfds))
{
    struct wv_role_request req;
    struct pollfd polled[2] = {
        {.fd = self->sock,    .events = POLLIN},
        {.fd = self->signals, .events = POLLIN},
    };

    for (;;) {
        int fds[WV_FDS_MAX];
        size_t nfds = WV_FDS_MAX;
        ssize_t n;

        if (poll(polled, 2, -1) < 0)
            continue;
        if (polled[1].revents != 0)
            reap(self);
        if (polled[0].revents == 0)
            continue;
        n = wv_fd_recv(self->sock, &req, sizeof req, fds, &nfds, NULL);
        if (n == WV_ECAPACITY) /* the bytes did come, for what they ask is no room */
            n = sizeof req.head;
        if (n == WV_EAGAIN)
            continue;
        if (n == 0 || n == WV_ELOST)
            return;
        if (n > 0) /* what was cut off is zero */
            memset((char *)&req + n, 0, sizeof req - (size_t)n);
        if (n >= (ssize_t)sizeof req.head)
            handle(self, &req, (size_t)n, fds, nfds);
        while (nfds > 0)
            close(fds[--nfds]);
    }
}

static int watch_children(struct wv_err *err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? wv_fail_errno(err, "launcher", "signalfd") : fd;
}

/* Every session's lease is a descriptor here. */
static void raise_nofile(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Give sock and images low numbers and close all others. */
static int keep_fds(struct launcher *self)
{
    int *const kept[] = {&self->sock, &self->template.image,
                         &self->template.open_image};
    int next = SOCK_FD;

    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (*kept[i] >= 0 && (*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, 64)) < 0)
            return -1;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (*kept[i] >= 0) {
            if (dup3(*kept[i], next, O_CLOEXEC) < 0)
                return -1;
            *kept[i] = next++;
        }
    return (int)syscall(SYS_close_range, next, ~0u, 0);
}

/* The host's terminal or /dev/null is a descriptor of the host's tree: let go of it. */
static void leave_stdio(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    wv_fd_drop(&null);
}

static int build(struct launcher *self, const struct wv_role_request *req,
                 struct wv_err *err)
{
    if (keep_fds(self) < 0)
        return wv_fail_errno(err, "launcher", "descriptors");
    self->signals = watch_children(err);
    if (self->signals < 0)
        return self->signals;
    if (sethostname(HOSTNAME, sizeof HOSTNAME - 1) < 0 || setdomainname("", 0) < 0)
        return wv_fail_errno(err, "template", "host name");
    if (memchr(req->u.template.source, '\0', sizeof req->u.template.source) == NULL)
        return wv_fail(err, WV_EINVALID, "template", "unended path");
    self->template.rootfs = req->u.template.kind == WV_TEMPLATE_ROOTFS;
    return wv_template_build(&self->template, req->u.template.source, err);
}

static _Noreturn void run_template(struct launcher *self,
                                   const struct wv_role_request *req, int sock)
{
    struct wv_err err = {0};

    self->sock = sock;
    self->count = 0;
    if (build(self, req, &err) < 0) {
        answer(self->sock, WV_ROLE_READY, &req->head, 0, &err, NULL, 0);
        _exit(1);
    }
    leave_stdio();
    answer(self->sock, WV_ROLE_READY, &req->head, 0, NULL, NULL, 0);
    serve(self, launch_or_say);
    for (size_t i = 0; i < self->count; i++)
        kill(self->children[i].pid, SIGKILL);
    _exit(0);
}

static void start_template(struct launcher *self, const struct wv_role_request *req,
                           size_t len, int *fds, size_t nfds)
{
    struct wv_err err = {0};
    long pid;

    if (req->head.type != WV_ROLE_TEMPLATE || nfds != 1 ||
        len < offsetof(struct wv_role_request, u.template.source))
        return;
    pid = wv_clone(CLONE_NEWNS | CLONE_NEWUTS);
    if (pid == 0)
        run_template(self, req, fds[0]);
    if (pid > 0)
        return;
    wv_fail_errno(&err, "launcher", "cloning for a template");
    answer(fds[0], WV_ROLE_READY, &req->head, 0, &err, NULL, 0);
}

static int wait_for_maps(int sock)
{
    char byte;
    ssize_t n;

    do {
        n = read(sock, &byte, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -1;
}

int wv_launcher_main(int sock, int unprivileged)
{
    struct launcher self = {
        .sock = sock,
        .template = {.unprivileged = unprivileged, .image = -1, .open_image = -1},
    };
    struct wv_err err = {0};

    /* In a new pid namespace getppid is 0, so only the socket tells whether the
     * supervisor went before this took effect: the wait below sees that. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "wovyr-launcher");
    wv_process_prepare();
    raise_nofile();
    if (chdir("/") < 0 || keep_fds(&self) < 0 || wait_for_maps(self.sock) < 0)
        return 1;
    self.template.single = unprivileged && count_ids() <= SINGLE_MAX;
    self.template.image = make_image(0111, &err);
#ifdef WV_TEST
    self.template.open_image = make_image(0555, &err);
#endif
    self.signals = watch_children(&err);
    if (self.template.image < 0 || self.signals < 0) {
        fprintf(stderr, "wovyr: %s: %s: %s\n", err.op, err.msg, strerror(err.sys));
        return 1;
    }
    serve(&self, start_template);
    return 0;
}
