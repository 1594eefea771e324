/* net.c - a session's network namespace: loopback, and nothing else
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/net.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static int loopback_up(struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};

    strcpy(request.ifr_name, "lo");
    if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0)
        return wv_fail_errno(err, "net", "bringing loopback up");
    return 0;
}

/* A convenience that an older kernel lacks is no reason to refuse the namespace. */
static int set(const char *name, const char *value, struct wv_err *err)
{
    char path[96];
    WV_AUTO(wv_fd_drop) int fd = -1;

    snprintf(path, sizeof path, "/proc/sys/net/ipv4/%s", name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        return wv_fail_errno(err, "net", "setting %s", name);
    return 0;
}

int wv_net_prepare(uint32_t first, uint32_t last, struct wv_err *err)
{
    char groups[32];
    int rc = loopback_up(err);

    if (rc == 0)
        rc = set("ip_unprivileged_port_start", "0", err);
    snprintf(groups, sizeof groups, "%u\t%u", first, last);
    return rc < 0 ? rc : set("ping_group_range", groups, err);
}
