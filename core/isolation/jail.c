/* jail.c - the ordered list of steps from a clone to the agent
 *
 * The order is the argument: cgroups while the host's ids still apply; namespaces and
 * mounts while capabilities over them exist; the user namespace last, so that it owns
 * no other namespace; then what needs its capabilities, and then they go.
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/jail.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/caps.h"
#include "isolation/dev.h"
#include "isolation/proc.h"
#include "isolation/process.h"
#include "isolation/rlimit.h"
#include "isolation/store.h"

static int join_cgroups(struct wv_jail *jail, struct wv_err *err)
{
    for (unsigned i = 0; i < jail->plan->joins; i++)
        if (write(jail->joins[i], "0", 1) != 1)
            return wv_fail_errno(err, "cgroup", "joining hierarchy %u", i);
    if (unshare(CLONE_NEWCGROUP) < 0)
        return wv_fail_errno(err, "cgroup", "a cgroup namespace");
    return 0;
}

static int join_net(struct wv_jail *jail, struct wv_err *err)
{
    if (setns(jail->net, CLONE_NEWNET) < 0)
        return wv_fail_errno(err, "net", "entering the network namespace");
    return 0;
}

static int enter_root(struct wv_jail *jail, struct wv_err *err)
{
    if (jail->template->rootfs)
        return wv_template_rootfs_enter(jail, err);
    return wv_template_host_enter(jail, err);
}

static const struct {
    const char *name;
    int (*take)(struct wv_jail *jail, struct wv_err *err);
} steps[] = {
    {"process",   wv_process_reset   },
    {"cgroup",    join_cgroups       },
    {"net",       join_net           },
    {"root",      enter_root         },
    {"proc",      wv_proc_place      },
    {"store",     wv_store_place     },
    {"terminals", wv_dev_terminals   },
    {"mark",      wv_process_mark    },
    {"user",      wv_process_identity},
    {"keyring",   wv_process_keyring },
    {"files",     wv_process_files   },
    {"rlimits",   wv_rlimit_set      },
    {"caps",      wv_caps_drop       },
    {"exec",      wv_process_exec    },
};

_Noreturn void wv_jail_enter(struct wv_jail *jail)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct wv_err err = {0};

        if (steps[i].take(jail, &err) >= 0)
            continue;
        snprintf(err.op, sizeof err.op, "%s", steps[i].name);
        wv_fd_write_all(jail->report, &err, sizeof err);
        break;
    }
    _exit(127);
}
