/* rlimit.c - resource limits of a sandbox
 *
 * Nothing is inherited by chance: what the host's shell or service had set must not
 * decide what a program sees inside.
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/rlimit.h"

#include <sys/resource.h>

#include "isolation/jail.h"

#define NONE RLIM_INFINITY
#define MEMLOCK (8u << 20)
#define STACK (8u << 20)

struct limit {
    int which;
    rlim_t soft, hard;
    const char *name;
};

static int set(const struct limit *limit, struct wv_err *err)
{
    struct rlimit have, want = {limit->soft, limit->hard};

    /* Without CAP_SYS_RESOURCE a hard limit can only fall. */
    if (getrlimit(limit->which, &have) < 0)
        return wv_fail_errno(err, "rlimit", "reading %s", limit->name);
    if (want.rlim_max > have.rlim_max)
        want.rlim_max = have.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    if (want.rlim_cur == have.rlim_cur && want.rlim_max == have.rlim_max)
        return 0;
    if (setrlimit(limit->which, &want) < 0)
        return wv_fail_errno(err, "rlimit", "setting %s", limit->name);
    return 0;
}

int wv_rlimit_set(struct wv_jail *jail, struct wv_err *err)
{
    const struct wv_plan *plan = jail->plan;
    rlim_t nofile = plan->nofile > 0 ? plan->nofile : 1024;
    rlim_t pids = plan->pids > 0 ? plan->pids : 1024;
    rlim_t memlock =
        plan->memory > 0 && plan->memory < MEMLOCK ? plan->memory : MEMLOCK;
    const struct limit limits[] = {
        {RLIMIT_NOFILE,     nofile,  nofile,  "NOFILE"    },
        {RLIMIT_NPROC,      pids,    pids,    "NPROC"     },
        {RLIMIT_SIGPENDING, 4096,    4096,    "SIGPENDING"},
        {RLIMIT_MSGQUEUE,   819200,  819200,  "MSGQUEUE"  },
        {RLIMIT_MEMLOCK,    memlock, memlock, "MEMLOCK"   },
 /* 1, not 0: a core_pattern that is a pipe ignores 0 and runs the host's handler
  * on the guest's core; only 1 stops it. */
        {RLIMIT_CORE,       1,       1,       "CORE"      },
        {RLIMIT_STACK,      STACK,   NONE,    "STACK"     },
        {RLIMIT_NICE,       0,       0,       "NICE"      },
        {RLIMIT_RTPRIO,     0,       0,       "RTPRIO"    },
        {RLIMIT_RTTIME,     NONE,    NONE,    "RTTIME"    },
        {RLIMIT_CPU,        NONE,    NONE,    "CPU"       },
        {RLIMIT_FSIZE,      NONE,    NONE,    "FSIZE"     },
        {RLIMIT_DATA,       NONE,    NONE,    "DATA"      },
        {RLIMIT_AS,         NONE,    NONE,    "AS"        },
        {RLIMIT_RSS,        NONE,    NONE,    "RSS"       },
        {RLIMIT_LOCKS,      NONE,    NONE,    "LOCKS"     },
    };

    if (wv_jail_omits(jail, WV_WALL_RLIMITS))
        return 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        int status = set(&limits[i], err);

        if (status < 0)
            return status;
    }
    return 0;
}
