/* peer.c - what the benchmarks compare with: one sample, timed from inside, printed in us
 *
 *     peer spawn CMD...    posix_spawn and wait
 *     peer pipe CMD...     posix_spawn into a 64 KiB pipe that is read to its end
 *     peer read FILE       read a file to its end
 *
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static char block[65536];

static uint64_t drain(int fd)
{
    uint64_t total = 0;
    ssize_t n;

    while ((n = read(fd, block, sizeof block)) > 0)
        total += (uint64_t)n;
    return total;
}

/* Start argv with stdout at out (or /dev/null); returns the pid, or -1. */
static pid_t start(char **argv, int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    posix_spawn_file_actions_init(&actions);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&actions, out, 1);
    else
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int main(int argc, char **argv)
{
    uint64_t began, bytes = 0;
    int status = 0, ends[2];

    if (argc < 3)
        return 2;
    began = now_ns();
    if (strcmp(argv[1], "spawn") == 0) {
        if (start(argv + 2, -1) < 0 || wait(&status) < 0)
            return 1;
    } else if (strcmp(argv[1], "pipe") == 0) {
        if (pipe2(ends, O_CLOEXEC) < 0 || start(argv + 2, ends[1]) < 0)
            return 1;
        close(ends[1]);
        bytes = drain(ends[0]);
        wait(&status);
    } else if (strcmp(argv[1], "read") == 0) {
        int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            return 1;
        bytes = drain(fd);
    } else {
        return 2;
    }
    printf("%.3f %llu\n", (double)(now_ns() - began) / 1000.0, (unsigned long long)bytes);
    return status != 0;
}
