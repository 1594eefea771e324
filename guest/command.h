/* command.h - from an order to a running program
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_GUEST_COMMAND_H
#define WV_GUEST_COMMAND_H

#include "guest/parent.h"

struct wv_command {
    const struct wv_order *order;
    const char *cwd;
    char **argv, **env;
    const char *path; /* value of PATH in env, or NULL */
    int fds[3];       /* -1: as this process has it */
    int sys;          /* why it could not be started, 0: it was */
    const char *field;
};

/* Start it as a child; the pid, or -1 with sys and field set. */
pid_t wv_command_start(struct wv_command *command);

#endif
