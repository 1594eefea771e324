/* catalog.c - the catalog of unpacked templates: /var/lib/wovyr/t/<name>/root
 *
 * Theory of operation. Unpacking is the work of the system's own cp and tar, which know
 * about sparse files, attributes and hard links. They read what somebody else made, so
 * they run where it can do no harm: a mount namespace in which nothing is writable but
 * the new tree, without a network, with the capabilities of unpacking only. The archive
 * is opened before; its program gets it as standard input.
 *
 * SPDX-License-Identifier: MIT */
#include "supervisor/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolation/mount.h"
#include "supervisor/confine.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#define STAGED_MAX (WV_TEMPLATE_NAME_MAX + 32)
#define PATH "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
#define UNPACKING                                                                      \
    (1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER |               \
     1ull << CAP_FSETID | 1ull << CAP_MKNOD | 1ull << CAP_SETFCAP)

int wv_catalog_is_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= WV_TEMPLATE_NAME_MAX && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == len;
}

static int open_catalog(struct wv_err *err)
{
    int fd;

    umask(022); /* sessions of other users may stand on what is kept here */
    mkdir("/var/lib/wovyr", 0755);
    mkdir(WV_CATALOG, 0755);
    fd = open(WV_CATALOG, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? wv_fail_errno(err, "template", "opening %s", WV_CATALOG) : fd;
}

/* musl has no wrapper. */
static int rename_new(int catalog, const char *from, const char *to)
{
    return (int)syscall(SYS_renameat2, catalog, from, catalog, to, RENAME_NOREPLACE);
}

/* --- programs ---------------------------------------------------------------- */

/* Everything becomes read-only but the directory `name`, and that is where we stand. */
static int enclose(const char *name, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int copy = -1;
    WV_AUTO(wv_fd_drop) int all = -1;
    char path[sizeof WV_CATALOG + STAGED_MAX + 8];
    int rc;

    snprintf(path, sizeof path, "%s/%s", WV_CATALOG, name);
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0)
        return wv_fail_errno(err, "template", "namespaces for unpacking");
    if ((rc = wv_mount_private(err)) < 0 ||
        (rc = copy = wv_mount_clone(AT_FDCWD, path, 0, err)) < 0)
        return rc;
    all = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (all < 0)
        return wv_fail_errno(err, "template", "opening the root");
    if ((rc = wv_mount_restrict(all, MOUNT_ATTR_RDONLY, -1, 1, err)) < 0 ||
        (rc = wv_mount_put(copy, AT_FDCWD, path, err)) < 0)
        return rc;
    if (chdir(path) < 0)
        return wv_fail_errno(err, "template", "entering %s", path);
    return wv_confine_caps(UNPACKING, err);
}

static _Noreturn void run(int input, const char *name, char *const argv[], int report)
{
    char path[] = PATH, locale[] = "LC_ALL=C.UTF-8";
    char *envp[] = {path, locale, NULL};
    struct wv_err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (enclose(name, &err) < 0 || dup2(input, 0) < 0 || dup2(report, 2) < 0) {
        dprintf(report, "%s: %s", err.msg, strerror(err.sys));
        _exit(126);
    }
    syscall(SYS_close_range, 3, ~0u, 0);
    execvpe(argv[0], argv, envp);
    dprintf(2, "cannot run %s: %s", argv[0], strerror(errno));
    _exit(127);
}

/* Run to the end. The first line of what it complains about explains a failure. */
static int run_confined(int input, const char *name, char *const argv[],
                        struct wv_err *err)
{
    char text[160];
    size_t have = 0;
    int report[2], status = 0;
    ssize_t n;
    pid_t child;

    if (pipe2(report, O_CLOEXEC) < 0)
        return wv_fail_errno(err, "template", "a pipe");
    child = fork();
    if (child == 0)
        run(input, name, argv, report[1]);
    close(report[1]);
    do {
        char rest[256];

        n = have < sizeof text - 1
                ? read(report[0], text + have, sizeof text - 1 - have)
                : read(report[0], rest, sizeof rest);
        if (n > 0 && have < sizeof text - 1)
            have += (size_t)n;
    } while (n > 0);
    close(report[0]);
    text[have] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (child < 0 || waitpid(child, &status, 0) != child)
        return wv_fail_errno(err, "template", "running %s", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return wv_fail(err, WV_EFAILED, "template", "%s: %s", argv[0],
                       have > 0 ? text : "it was killed");
    return 0;
}

/* --- building ---------------------------------------------------------------- */

static int unpack(const char *kind, const char *source, const char *root,
                  struct wv_err *err)
{
    char here[] = ".", cp[] = "cp", archive[] = "-a", dashes[] = "--";
    char tar[] = "tar", extract[] = "-xpf", input[] = "/dev/stdin",
         numeric[] = "--numeric-owner";
    char xattrs[] = "--xattrs", all[] = "--xattrs-include=*";
    char from[4200];
    WV_AUTO(wv_fd_drop) int fd = -1;

    if (source[0] != '/')
        return wv_fail(err, WV_EINVALID, "template", "%s is not an absolute path",
                       source);
    if (strcmp(kind, "tree") == 0) {
        char *const argv[] = {cp, archive, dashes, from, here, NULL};

        snprintf(from, sizeof from, "%s/.", source);
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return run_confined(fd, root, argv, err);
    }
    if (strcmp(kind, "tar") == 0) {
        char *const argv[] = {tar, extract, input, numeric, xattrs, all, NULL};

        fd = open(source, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return wv_fail_errno(err, "template", "opening %s", source);
        return run_confined(fd, root, argv, err);
    }
    return wv_fail(err, WV_EINVALID, "template",
                   "kind is \"tree\" or \"tar\", not \"%s\"", kind);
}

/* With the system's rm, confined to the directory like the rest. */
static void discard(int catalog, const char *name)
{
    char rm[] = "rm", flags[] = "-rf", dashes[] = "--", root[] = "root";
    char *const argv[] = {rm, flags, dashes, root, NULL};
    WV_AUTO(wv_fd_drop) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    run_confined(null, name, argv, NULL);
    unlinkat(catalog, name, AT_REMOVEDIR);
}

/* A name beside name that nothing looks for: wv_catalog_is_name refuses it. */
static void make_hidden(const char *name, char hidden[STAGED_MAX])
{
    uint64_t salt = 0;

    getrandom(&salt, sizeof salt, 0);
    snprintf(hidden, STAGED_MAX, ".%.*s.%016llx", WV_TEMPLATE_NAME_MAX, name,
             (unsigned long long)salt);
}

int wv_catalog_build(const char *name, const char *kind, const char *source,
                     struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int catalog = open_catalog(err);
    char staged[STAGED_MAX], root[STAGED_MAX + 8];
    struct stat seen;
    int rc;

    if (catalog < 0)
        return catalog;
    if (fstatat(catalog, name, &seen, AT_SYMLINK_NOFOLLOW) == 0)
        return wv_fail(err, WV_EEXISTS, "template", "%s exists", name);
    make_hidden(name, staged);
    snprintf(root, sizeof root, "%s/root", staged);
    if (mkdirat(catalog, staged, 0755) < 0 || mkdirat(catalog, root, 0755) < 0)
        return wv_fail_errno(err, "template", "making %s", staged);
    rc = unpack(kind, source, root, err);
    if (rc == 0 && rename_new(catalog, staged, name) < 0)
        rc = wv_fail_errno(err, "template", "naming %s", name);
    if (rc < 0)
        discard(catalog, staged);
    return rc;
}

int wv_catalog_forget(const char *name, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int catalog = open_catalog(err);
    char trash[STAGED_MAX];

    if (catalog < 0)
        return catalog;
    make_hidden(name, trash);
    if (rename_new(catalog, name, trash) < 0)
        return wv_fail_errno(err, "template", "removing %s", name);
    discard(catalog, trash);
    return 0;
}

int wv_catalog_list(void (*each)(void *user, const char *name, uint32_t built),
                    void *user, struct wv_err *err)
{
    int fd = open(WV_CATALOG, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (dir == NULL) {
        wv_fd_drop(&fd);
        return errno == ENOENT
                   ? 0
                   : wv_fail_errno(err, "template", "opening %s", WV_CATALOG);
    }
    while ((entry = readdir(dir)) != NULL) {
        struct stat seen;

        if (wv_catalog_is_name(entry->d_name) &&
            fstatat(fd, entry->d_name, &seen, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(seen.st_mode))
            each(user, entry->d_name, (uint32_t)seen.st_mtime);
    }
    closedir(dir);
    return 0;
}
