/* image.c - which supervisor to start: a named, the installed, or the embedded one
 *
 * The installed one is there for systems that only run what has a path (an AppArmor
 * profile for user namespaces, vm.memfd_noexec=2). It must be of this build, because
 * only the two sides of one build are sure to mean the same: the number that a
 * supervisor says in its HELLO stands in its file, and looking for it there is cheaper
 * than running it.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "build_id.h"
#include "client/embed.h"
#include "client/spawn.h"

#define INSTALLED_MAX (32u << 20)

#ifndef WV_SUPERVISOR_PATH
#define WV_SUPERVISOR_PATH "/usr/libexec/wovyr/supervisor"
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

/* With the NUL at its end, so that no longer one matches. */
static const char build[] = WV_BUILD;

static void drop_bytes(uint8_t **data)
{
    free(*data);
}

/* Is fd root's alone to change, and of this build? */
static int is_ours(int fd)
{
    WV_AUTO(drop_bytes) uint8_t *data = NULL;
    struct stat st;
    size_t size, got = 0;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != 0 ||
        (st.st_mode & 022) != 0 || st.st_size > INSTALLED_MAX)
        return 0;
    size = (size_t)st.st_size;
    data = malloc(size + 1);
    while (data != NULL && got < size) {
        ssize_t n = pread(fd, data + got, size - got, (off_t)got);

        if (n <= 0)
            return 0;
        got += (size_t)n;
    }
    return data != NULL && memmem(data, got, build, sizeof build) != NULL;
}

/* The embedded copy as an executable that nobody can change any more. */
static int embedded(struct wv_err *err)
{
    size_t len = (size_t)(wv_supervisor_image_end - wv_supervisor_image);
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    WV_AUTO(wv_fd_drop) int fd = -1;

    if (len == 0)
        return wv_fail(err, WV_EUNAVAILABLE, "spawn", "no supervisor is built in");
    fd = memfd_create("wovyr-supervisor", flags | MFD_EXEC);
    if (fd < 0 &&
        errno == EINVAL) /* before Linux 6.3, where every memfd is executable */
        fd = memfd_create("wovyr-supervisor", flags);
    else
        seals |= F_SEAL_EXEC;
    if (fd < 0)
        return wv_fail_errno(err, "spawn",
                             "memfd_create (install " WV_SUPERVISOR_PATH
                             " of this build where "
                             "executable memory files are not allowed)");
    if (wv_fd_write_all(fd, wv_supervisor_image, len) < 0 || fchmod(fd, 0555) < 0 ||
        fcntl(fd, F_ADD_SEALS, seals) < 0)
        return wv_fail_errno(err, "spawn", "copying the supervisor");
    return wv_fd_take(&fd);
}

int wv_image_open(struct wv_image *image, const char *path, struct wv_err *err)
{
    image->fd = -1;
    image->path[0] = '\0';
    if (path == NULL)
        path = secure_getenv("WOVYR_SUPERVISOR");
    if (path != NULL && path[0] != '\0') {
        /* The supervisor starts in /, so a relative name must be resolved here. */
        if (realpath(path, image->path) == NULL)
            return wv_fail_errno(err, "spawn", "%s", path);
        return 0;
    }
    image->fd =
        open(WV_SUPERVISOR_PATH, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (image->fd >= 0 && !is_ours(image->fd))
        wv_fd_drop(&image->fd);
    if (image->fd < 0)
        image->fd = embedded(err);
    return image->fd < 0 ? image->fd : 0;
}

void wv_image_drop(struct wv_image *image)
{
    wv_fd_drop(&image->fd);
}
