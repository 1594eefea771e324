/* etc.c - /etc of the host template
 *
 * Copied once, when the template is built, so that later changes and what is not listed
 * never show. Only regular files that everybody may read, and links, are taken: a
 * secret in a listed directory stays outside by its own mode. Deliberately not listed:
 * gitconfig, pip.conf, npmrc, environment, apt, ssh, netrc and the like, which hold
 * credentials of the host's own users.
 *
 * SPDX-License-Identifier: MIT */
#include "isolation/etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define DEPTH_MAX 8
#define FILE_SIZE_MAX (8 << 20)

static const char *const listed[] = {
    /* the loader and the alternatives that /usr's links lead through */
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*.path", "alternatives",
    /* certificates and TLS settings; never ssl/private */
    "ssl", "ca-certificates.conf", "pki", "crypto-policies", "ca-certificates",
    /* name tables of the C library */
    "services", "protocols", "rpc", "networks", "ethertypes", "host.conf", "gai.conf",
    /* what system this is */
    "os-release", "*-release", "debian_version", "lsb-release", "dpkg",
    /* time and language */
    "localtime", "timezone", "locale.alias", "locale.conf",
    /* settings of programs below /usr */
    "fonts", "manpath.config", "man_db.conf", "terminfo", "magic", "magic.mime",
    "mime.types", "java*", "python3*", "perl", "groff", "vim", "vimrc", "lua*", "R",
    "texmf", "emacs", "xml", "sgml", "ImageMagick-*", "ghostscript", "nanorc",
    "inputrc", "bash_completion.d", "xattr.conf", "shells", "login.defs"};

/* Below a listed directory: the only entries that are taken. */
static const struct {
    const char *dir;
    const char *const only[3];
} narrowed[] = {
    {"ssl",  {"certs", "openssl.cnf", "cert.pem"}},
    {"pki",  {"ca-trust", "tls", NULL}           },
    {"dpkg", {"origins", NULL, NULL}             },
};

#define PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char hosts[] = "127.0.0.1 localhost\n"
                            "::1 localhost ip6-localhost ip6-loopback\n"
                            "127.0.1.1 wovyr\n";
static const char resolv[] = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n";
static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\n"
                               "hosts: files dns\nnetworks: files\nprotocols: files\n"
                               "services: files\nethers: files\nrpc: files\n"
                               "netgroup: files\n";
static const char profile[] = "PATH=" PATH "\nexport PATH\n"
                              "if [ -n \"$BASH\" ] && [ -r /etc/bash.bashrc ]; then\n"
                              "    . /etc/bash.bashrc\nfi\n";
static const char bashrc[] = "[ -z \"$PS1\" ] && return\nPS1='\\u@\\h:\\w\\$ '\n"
                             "shopt -s checkwinsize\n";
static const char gitconfig[] = "[user]\n\tname = user\n\temail = user@wovyr\n"
                                "[safe]\n\tdirectory = *\n";

static const struct {
    const char *name, *text;
} own[] = {
    {"hostname",      "wovyr\n"},
    {"hosts",         hosts    },
    {"resolv.conf",   resolv   },
    {"nsswitch.conf", nsswitch },
    {"profile",       profile  },
    {"bash.bashrc",   bashrc   },
    {"gitconfig",     gitconfig},
    {"fstab",         ""       },
};

#define SYSTEM_ACCOUNTS "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
#define SYSTEM_GROUPS "tty:x:5:\nmail:x:8:\nstaff:x:50:\nnogroup:x:65534:\n"

static const char passwd[] =
    "root:x:0:0:root:/root:/bin/bash\n"
    "user:x:1000:1000:user:/home/user:/bin/bash\n" SYSTEM_ACCOUNTS;
static const char group[] = "root:x:0:\nuser:x:1000:\n" SYSTEM_GROUPS;

/* With a single id, `user` and root are two names of it. */
static const char single_passwd[] =
    "root:x:0:0:root:/home/user:/bin/bash\n"
    "user:x:0:0:user:/home/user:/bin/bash\n" SYSTEM_ACCOUNTS;
static const char single_group[] = "root:x:0:\nuser:x:0:\n" SYSTEM_GROUPS;

static int copy_link(int from, const char *name, int to, struct wv_err *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);

    if (n < 0)
        return wv_fail_errno(err, "etc", "link %s", name);
    target[n] = '\0';
    if (symlinkat(target, to, name) < 0)
        return wv_fail_errno(err, "etc", "making link %s", name);
    return 0;
}

static int copy_file(int from, const char *name, int to, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop) int in = -1;
    WV_AUTO(wv_fd_drop) int out = -1;
    struct stat seen;
    ssize_t n;

    in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0 || fstat(in, &seen) < 0)
        return wv_fail_errno(err, "etc", "file %s", name);
    /* What it is now counts, not what it was when the directory was read. */
    if (!S_ISREG(seen.st_mode) || (seen.st_mode & S_IROTH) == 0 ||
        seen.st_size > FILE_SIZE_MAX)
        return 0;
    out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                 seen.st_mode & 0111 ? 0755 : 0644);
    if (out < 0)
        return wv_fail_errno(err, "etc", "making %s", name);
    while ((n = sendfile(out, in, NULL, FILE_SIZE_MAX)) > 0)
        ;
    if (n < 0)
        return wv_fail_errno(err, "etc", "copying %s", name);
    return 0;
}

static int is_allowed(const char *dir, const char *name)
{
    if (dir == NULL) {
        for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
            if (fnmatch(listed[i], name, 0) == 0)
                return 1;
        return 0;
    }
    for (size_t i = 0; i < sizeof narrowed / sizeof *narrowed; i++) {
        if (strcmp(narrowed[i].dir, dir) != 0)
            continue;
        for (size_t k = 0; k < 3 && narrowed[i].only[k] != NULL; k++)
            if (strcmp(narrowed[i].only[k], name) == 0)
                return 1;
        return 0;
    }
    return 1;
}

static void close_dir(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

/* One level. path is the name of a directory right below /etc, "" for /etc itself and
 * NULL for what lies deeper; `from` is taken over. */
static int copy_dir(int from, const char *path, int to, int depth, struct wv_err *err)
{
    WV_AUTO(close_dir) DIR *dir = fdopendir(from);
    struct dirent *entry;
    int status = 0;

    if (dir == NULL) {
        close(from);
        return wv_fail_errno(err, "etc", "reading a directory");
    }
    while (status == 0 && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        struct stat seen;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (path != NULL && !is_allowed(*path == '\0' ? NULL : path, name))
            continue;
        if (fstatat(from, name, &seen, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* went away meanwhile */
        if (S_ISLNK(seen.st_mode)) {
            status = copy_link(from, name, to, err);
        } else if (S_ISREG(seen.st_mode) && (seen.st_mode & S_IROTH) != 0) {
            status = copy_file(from, name, to, err);
        } else if (S_ISDIR(seen.st_mode) && (seen.st_mode & 05) == 05 && depth > 0) {
            WV_AUTO(wv_fd_drop) int below = -1;
            int inner =
                openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

            if (inner < 0)
                continue;
            if (mkdirat(to, name, 0755) < 0 ||
                (below = openat(to, name, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
                close(inner);
                return wv_fail_errno(err, "etc", "making %s", name);
            }
            status = copy_dir(inner, path != NULL && *path == '\0' ? name : NULL, below,
                              depth - 1, err);
        }
    }
    return status;
}

static int write_own(int to, const char *name, const char *text, struct wv_err *err)
{
    WV_AUTO(wv_fd_drop)
    int fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0 || wv_fd_write_all(fd, text, strlen(text)) < 0)
        return wv_fail_errno(err, "etc", "writing %s", name);
    return 0;
}

int wv_etc_copy(int to, int single, struct wv_err *err)
{
    int from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status;

    if (from < 0)
        return wv_fail_errno(err, "etc", "opening /etc");
    status = copy_dir(from, "", to, DEPTH_MAX, err);
    for (size_t i = 0; status == 0 && i < sizeof own / sizeof *own; i++)
        status = write_own(to, own[i].name, own[i].text, err);
    if (status == 0)
        status = write_own(to, "passwd", single ? single_passwd : passwd, err);
    if (status == 0)
        status = write_own(to, "group", single ? single_group : group, err);
    if (status == 0 && (symlinkat("/run/machine-id", to, "machine-id") < 0 ||
                        symlinkat("/proc/self/mounts", to, "mtab") < 0))
        return wv_fail_errno(err, "etc", "links");
    return status;
}
