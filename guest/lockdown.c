/* lockdown.c - Landlock and seccomp, for the agent and all that it starts
 *
 * One policy for both: the agent needs nothing that its guests may not do. Mounts and
 * permissions already say what can be written; Landlock says it again by another part
 * of the kernel. The seccomp program is made at build time, see
 * core/isolation/gen/seccomp_gen.c.
 *
 * SPDX-License-Identifier: MIT */
#include "guest/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/wall.h"
#include "seccomp_filter.h"

/* Rights by the ABI that brought them; the kernel's own header may be older. */
#define ABI_1 ((1u << 13) - 1)
#define REFER (1u << 13)     /* 2 */
#define TRUNCATE (1u << 14)  /* 3 */
#define IOCTL_DEV (1u << 15) /* 5 */

#define READ                                                                           \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                       \
     LANDLOCK_ACCESS_FS_READ_DIR)
#define DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define WRITE (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | IOCTL_DEV)
#define ALL ((ABI_1 | REFER | TRUNCATE | IOCTL_DEV) & ~(unsigned)DEVICES)

#define SCOPES 3u /* abstract unix sockets, signals: nothing outside the domain */

/* struct landlock_ruleset_attr as of ABI 6. */
struct ruleset {
    uint64_t fs, net, scoped;
};

/* Where the root is read-only. Below / of an image everything may be written. */
static const struct {
    const char *path;
    uint64_t rights;
} places[] = {
    {"/workspace", ALL  },
    {"/tmp",       ALL  },
    {"/home",      ALL  },
    {"/var/tmp",   ALL  },
    {"/run",       ALL  },
    {"/dev",       WRITE},
    {"/dev/shm",   ALL  },
    {"/proc",      WRITE},
};

static int omitted(enum wv_wall wall)
{
#ifdef WV_TEST
    const char *omit = getenv("WOVYR_OMIT");

    return omit != NULL && (strtoul(omit, NULL, 10) >> wall & 1) != 0;
#else
    (void)wall;
    return 0;
#endif
}

static int allow(int ruleset, const char *path, uint64_t rights, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int dir = open(path, O_PATH | O_CLOEXEC);
    const struct landlock_path_beneath_attr rule = {
        .allowed_access = rights,
        .parent_fd = dir,
    };

    if (dir < 0 && errno == ENOENT)
        return 0;
    if (dir < 0 || syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
                           &rule, 0) < 0)
        return wv_fail_errno(err, "landlock", "rule for %s", path);
    return 0;
}

static int add_rules(int ruleset, uint64_t handled, struct wv_err *err)
{
    struct statvfs root;
    int status;

    if (statvfs("/", &root) < 0)
        return wv_fail_errno(err, "landlock", "looking at /");
    if ((root.f_flag & ST_RDONLY) == 0)
        return allow(ruleset, "/", ALL & handled, err);
    status = allow(ruleset, "/", READ & handled, err);
    for (size_t i = 0; status == 0 && i < sizeof places / sizeof *places; i++)
        status = allow(ruleset, places[i].path, places[i].rights & handled, err);
    return status;
}

static int enter_landlock(struct wv_err *err)
{
    struct ruleset attr = {.fs = ABI_1};
    size_t size = sizeof attr.fs;
    WV_AUTO(wv_fd_drop) int ruleset = -1;
    int status, abi;

    abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
                       LANDLOCK_CREATE_RULESET_VERSION);
    if (abi <= 0)
        return 0; /* not in this kernel, or switched off: known, and reported */
    if (abi >= 2)
        attr.fs |= REFER;
    if (abi >= 3)
        attr.fs |= TRUNCATE;
    if (abi >= 5)
        attr.fs |= IOCTL_DEV;
    if (abi >= 6) {
        attr.scoped = SCOPES;
        size = sizeof attr;
    }
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (ruleset < 0)
        return wv_fail_errno(err, "landlock", "a ruleset of ABI %d", abi);
    status = add_rules(ruleset, attr.fs, err);
    if (status < 0)
        return status;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return wv_fail_errno(err, "landlock", "entering");
    return abi;
}

static int enter_seccomp(struct wv_err *err)
{
    /* The kernel only reads it. */
    const struct sock_fprog program = {
        .len = sizeof wv_seccomp_filter / sizeof *wv_seccomp_filter,
        .filter = (struct sock_filter *)(uintptr_t)wv_seccomp_filter,
    };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return wv_fail_errno(err, "seccomp", "loading the filter");
    return 0;
}

int wv_lockdown(struct wv_err *err)
{
    int abi = 0, status = 0;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return wv_fail_errno(err, "lockdown", "no_new_privs");
    if (!omitted(WV_WALL_LANDLOCK))
        abi = enter_landlock(err);
    if (abi >= 0 && !omitted(WV_WALL_SECCOMP))
        status = enter_seccomp(err);
    return status < 0 ? status : abi;
}
