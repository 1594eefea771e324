/* main.c - the supervisor's executable: three roles, one program
 *
 * Theory of operation.
 *
 *   host process                                       reads and writes, forks nothing
 *     |  control: HELLO + its pidfd, OPEN + a socket, CLOSE ...
 *     v
 *   wovyr-super      epoll: clients, pidfds, timers; CAP_KILL and a narrow filter only
 *     |  |  `----- lifelines: one per session, "C" + a socket is a new connection ---.
 *     |  |                                                                           |
 *     |  `--> wovyr-launch     PID 1 of the outer pid namespace                      |
 *     |         `--> one per template, in its pivoted mount namespace                |
 *     |                `--> wovyr-agent   PID 1 of one sandbox, its own ids <--------'
 *     |                       `--> commands
 *     `-----> wovyr-janitor    paths and slow work: namespaces and cgroups made ahead,
 *               `--> a child per long job: unpacking, sweeping
 *
 * Who tells whom: requests of role.h, always supervisor to role, answers back. Nobody
 * but the supervisor reads what a client wrote; nobody but the host reads what a guest
 * wrote.
 *
 * Who dies with whom. The host gone (its pidfd or end of file): the supervisor kills
 * the launcher and ends. The supervisor gone, in any way: the launcher by PDEATHSIG,
 * and with it, by the kernel, the whole pid namespace: every template launcher, agent
 * and command. The launcher gone: the same from there down; the supervisor says so and
 * ends. The janitor outlives them by a moment: it sees the supervisor's socket hang up,
 * waits until the launcher is wholly gone, and removes everything that bears the
 * owner's name (cgroups, leases, files). The janitor gone: sessions go on, the pool
 * runs dry, and the next supervisor's janitor sweeps. So what any single kill leaves
 * behind is gone a moment later, or found by its name.
 *
 * The order of starting is the point of this file: the other roles are cloned before
 * the first byte of a client is read, so their memory, which guests are clones of,
 * holds nothing; then this process gives its rights up; then it listens.
 *
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "supervisor/confine.h"
#include "supervisor/roles.h"
#include "supervisor/supervisor.h"

#define CONTROL_FD 3

static void raise_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
    struct wv_roles roles;
    struct wv_err err;

    if (argc != 1 || fcntl(CONTROL_FD, F_GETFD) < 0) {
        fprintf(stderr, "wovyr-supervisor is started by the wovyr library\n");
        return 2;
    }
    raise_descriptors();
    wv_roles_start(&roles, argv[0], strlen(argv[0]) + 1);
    signal(SIGPIPE, SIG_IGN); /* not before: what is ignored stays so in every child */
    prctl(PR_SET_NAME, "wovyr-super");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (wv_confine_caps(1ull << CAP_KILL, &err) < 0) {
        fprintf(stderr, "wovyr: %s: %s\n", err.op, err.msg);
        return 1;
    }
    return wv_supervisor_run(&roles, CONTROL_FD);
}
