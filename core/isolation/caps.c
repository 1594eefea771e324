/* caps.c - capabilities of a sandbox
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolation/jail.h"

#define BIT(cap) (1u << (cap))

/* What package managers and daemons that change their user need. Deliberately absent:
 * SYS_PTRACE, which would reach into the agent; MKNOD, SYS_ADMIN, NET_ADMIN and
 * SYS_CHROOT, which are worth nothing without a namespace of one's own; SETFCAP. */
#define MASK                                                                           \
    (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |      \
     BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID))

/* The kernel's default meaning of uid 0, fixed; ambient capabilities never. */
#define SECUREBITS                                                                     \
    (SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |  \
     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

_Static_assert(MASK == 0xfb, "the documented mask");

static int drop_bounding(struct wv_err *err)
{
    for (unsigned cap = 0; cap < 64; cap++) {
        if (cap < 32 && (MASK & BIT(cap)) != 0)
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL && cap > CAP_SETFCAP)
            return 0; /* past the last one of this kernel */
        return wv_fail_errno(err, "caps", "dropping %u from the bounding set", cap);
    }
    return 0;
}

int wv_caps_drop(struct wv_jail *jail, struct wv_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    /* Nothing effective: the exec that follows must not be able to read the agent's
     * image, even where the sandbox's root owns it. It makes the mask effective. */
    struct __user_cap_data_struct data[2] = {{.permitted = MASK}};

    if (!wv_jail_omits(jail, WV_WALL_CAPS)) {
        int status = drop_bounding(err);

        if (status < 0)
            return status;
        if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
            return wv_fail_errno(err, "caps", "securebits");
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &head, data) < 0)
            return wv_fail_errno(err, "caps", "setting them");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return wv_fail_errno(err, "caps", "no_new_privs");
    return 0;
}
