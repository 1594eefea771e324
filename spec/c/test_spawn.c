/* test_spawn.c - what a host and its supervisor see of a spawn
 *
 * This program is its own supervisor: started under that name, it reports on descriptor
 * 3 what it has inherited.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/embed.h"
#include "client/spawn.h"
#include "test.h"

/* A module without a supervisor in it. */
__asm__(".section .rodata\n.globl wv_supervisor_image, wv_supervisor_image_end\n"
        "wv_supervisor_image:\nwv_supervisor_image_end: .byte 0\n.text\n");

extern char **environ;

struct report {
    int open[64]; /* descriptors that were open, in order; -1 ends */
    int ignored, blocked;
    unsigned umask;
    int leader, parent, env;
    dev_t null[3];
    char cwd[64], var[64];
};

static volatile sig_atomic_t children;

static void on_child(int sig)
{
    (void)sig;
    children++;
}

static int supervise(void)
{
    static struct report report;
    struct sigaction action;
    sigset_t mask;
    struct stat st;
    int n = 0;

    for (int fd = 0; fd < 1024 && n < 63; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            report.open[n++] = fd;
    report.open[n] = -1;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int sig = 1; sig < NSIG; sig++) {
        report.blocked += sigismember(&mask, sig) == 1;
        if (sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            report.ignored++;
    }
    report.umask = umask(0);
    report.leader = getsid(0) == getpid();
    report.parent = getppid();
    for (char **env = environ; *env != NULL; env++, report.env++)
        snprintf(report.var, sizeof report.var, "%s", *env);
    for (int fd = 0; fd < 3; fd++)
        report.null[fd] = fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) ? st.st_rdev : 0;
    if (getcwd(report.cwd, sizeof report.cwd) == NULL)
        return 1;
    if (send(3, &report, sizeof report, MSG_NOSIGNAL) != (ssize_t)sizeof report)
        return 1;
    while (recv(3, &n, sizeof n, 0) > 0)
        ;
    return 0;
}

static int same_mask(const sigset_t *a, const sigset_t *b)
{
    int same = 1;

    for (int sig = 1; sig < NSIG; sig++)
        same &= sigismember(a, sig) == sigismember(b, sig);
    return same;
}

static int receive(int sock, struct report *report)
{
    struct pollfd ready = {.fd = sock, .events = POLLIN};

    memset(report, 0, sizeof *report);
    return poll(&ready, 1, 20000) == 1 &&
           recv(sock, report, sizeof *report, MSG_WAITALL) == (ssize_t)sizeof *report;
}

static void check_spawned(const struct wv_image *image, const char *debug)
{
    struct report report;
    struct wv_err err = {0};
    struct stat null;
    sigset_t before, after;
    int sock = -1;
    unsigned mask;

    stat("/dev/null", &null);
    if (debug != NULL)
        setenv("WOVYR_DEBUG", debug, 1);
    else
        unsetenv("WOVYR_DEBUG");
    sigprocmask(SIG_SETMASK, NULL, &before);
    CHECK(wv_spawn(image, &sock, &err) == 0, "a spawn");
    if (err.code != 0)
        printf("# %s: %s (%d)\n", err.op, err.msg, err.sys);
    sigprocmask(SIG_SETMASK, NULL, &after);
    mask = umask(022);
    CHECK(mask == 022, "the host's umask stays");
    CHECK(same_mask(&before, &after), "the host's signal mask stays");
    CHECK((fcntl(sock, F_GETFD) & FD_CLOEXEC) != 0 &&
              (fcntl(sock, F_GETFL) & O_NONBLOCK),
          "the host's end is close-on-exec and non-blocking");
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "the host has no child");
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "of any kind");
    CHECK(children == 0, "and got no SIGCHLD");
    if (!receive(sock, &report)) {
        CHECK(0, "a report");
        close(sock);
        return;
    }
    CHECK(report.open[0] == 0 && report.open[1] == 1 && report.open[2] == 2 &&
              report.open[3] == 3 && report.open[4] == -1,
          "descriptors 0 to 3 and no other");
    CHECK(report.null[0] == null.st_rdev && report.null[1] == null.st_rdev,
          "/dev/null");
    CHECK(debug != NULL || report.null[2] == null.st_rdev, "also as stderr");
    CHECK(report.env == (debug != NULL) &&
              (debug == NULL || strcmp(report.var, "WOVYR_DEBUG=1") == 0),
          "no environment but WOVYR_DEBUG");
    CHECK(report.ignored == 0 && report.blocked == 0, "signals as at first");
    CHECK(report.umask == 077 && report.leader && strcmp(report.cwd, "/") == 0,
          "umask 077, an own session, in /");
    CHECK(report.parent != getpid(), "not our child");
    close(sock);
}

static void check_errors(void)
{
    struct wv_image image;
    struct wv_err err;
    char path[] = "/tmp/test_spawn.XXXXXX";
    int sock = -1, fd = mkstemp(path);

    close(fd);
    CHECK(wv_image_open(&image, "/nonexistent", &err) == WV_ENOT_FOUND &&
              err.sys == ENOENT,
          "a path that is not there");
    CHECK(wv_image_open(&image, path, &err) == 0 &&
              wv_spawn(&image, &sock, &err) == WV_EDENIED && sock == -1,
          "a file that cannot be executed");
    chmod(path, 0700);
    CHECK(wv_spawn(&image, &sock, &err) < 0 && err.sys == ENOEXEC,
          "one that is no program");
    unlink(path);
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD && children == 0,
          "failed ones leave no child and no signal");
    unsetenv("WOVYR_SUPERVISOR");
    if (access("/usr/libexec/wovyr/supervisor", F_OK) != 0)
        CHECK(wv_image_open(&image, NULL, &err) == WV_EUNAVAILABLE, "nothing built in");
    setenv("WOVYR_SUPERVISOR", "/proc/self/exe", 1);
    CHECK(wv_image_open(&image, NULL, &err) == 0 && image.path[0] == '/',
          "WOVYR_SUPERVISOR");
}

int main(int argc, char **argv)
{
    struct wv_image image = {.fd = -1};
    struct wv_err err;
    sigset_t some;

    if (argc > 0 && strcmp(argv[0], "wovyr-supervisor") == 0)
        return supervise();

    /* A host in a state as bad as nginx's. */
    signal(SIGCHLD, on_child);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGTERM);
    sigprocmask(SIG_BLOCK, &some, NULL);
    setenv("SECRET", "x", 1);
    umask(022);
    for (int i = 0; i < 20; i++)
        if (dup2(2, 10 + 3 * i) < 0)
            return 1;

    CHECK(wv_image_open(&image, "/proc/self/exe", &err) == 0, "by path");
    check_spawned(&image, NULL);
    check_spawned(&image, "1");
    image.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    check_spawned(&image, NULL);
    wv_image_drop(&image);
    close(0);
    check_spawned(&image, NULL);
    check_errors();
    TEST_END();
}
