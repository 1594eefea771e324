/* test_path.c - paths and patterns of file requests
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "guest/glob.h"
#include "guest/path.h"
#include "test.h"

static char long_text[5000];

static int makes(const char *path, const char *cwd, const char *want, int dir)
{
    struct wv_path p;

    return wv_path_make(&p, wv_str(path), wv_str(cwd), "/home/u", NULL) == 0 &&
           strcmp(p.text, want) == 0 && p.len == strlen(want) && p.dir == dir;
}

static int refuses(struct wv_str path, struct wv_str cwd, const char *field, int sys)
{
    struct wv_path p;
    struct wv_err err;

    return wv_path_make(&p, path, cwd, "/home/u", &err) == WV_EINVALID &&
           strcmp(err.field, field) == 0 && err.sys == sys;
}

static void test_paths(void)
{
    const struct wv_str nul = {"a\0b", 3};
    struct wv_str just = {long_text, 4095};
    struct wv_path p;

    CHECK(makes("a", "", "/workspace/a", 0), "relative to the workspace");
    CHECK(makes("a", "b", "/workspace/b/a", 0), "relative to a relative cwd");
    CHECK(makes("a", "/b", "/b/a", 0), "relative to a cwd");
    CHECK(makes("a", "~", "/home/u/a", 0), "relative to home");
    CHECK(makes("/a", "/b", "/a", 0), "absolute");
    CHECK(makes("~", "/b", "/home/u", 0), "home");
    CHECK(makes("~/a", "/b", "/home/u/a", 0), "below home");
    CHECK(makes("~a", "/b", "/b/~a", 0), "a name with ~");
    CHECK(makes("a~", "/b", "/b/a~", 0), "a name that ends in ~");
    CHECK(makes("/", "", "/", 1), "the root");
    CHECK(makes("///", "", "/", 1), "slashes");
    CHECK(makes("", "/b", "/b", 0), "empty is cwd");
    CHECK(makes("//a//./b/", "", "/a/b", 1), "cleaned, and a directory");
    CHECK(makes("a/.", "", "/workspace/a", 1), "a dot means a directory");
    CHECK(makes(".", "", "/workspace", 1), "dot");
    CHECK(makes("..", "/b", "/b/..", 1), ".. stays");
    CHECK(makes("a/../b", "/", "/a/../b", 0), ".. stays in the middle");
    CHECK(makes("a..", "/", "/a..", 0), "a name that ends in dots");
    CHECK(makes("a.", "/", "/a.", 0), "a name that ends in a dot");
    CHECK(makes("...", "/", "/...", 0), "a name of three dots");
    CHECK(makes("\xff\xfe\n", "/", "/\xff\xfe\n", 0), "bytes are bytes");

    CHECK(refuses(nul, wv_str(""), "path", EINVAL), "NUL in path");
    CHECK(refuses(wv_str("a"), nul, "cwd", EINVAL), "NUL in cwd");
    memset(long_text, 'x', sizeof long_text);
    long_text[0] = '/';
    CHECK(refuses((struct wv_str){long_text, 4096}, wv_str(""), "path", ENAMETOOLONG),
          "4096 bytes");
    CHECK(wv_path_make(&p, just, wv_str(""), "/", NULL) == 0 && p.len == 4095,
          "4095 bytes");
    CHECK(refuses(wv_str("ab"), (struct wv_str){long_text, 4093}, "path", ENAMETOOLONG),
          "too long together");
    memset(long_text, '/', 4000);
    memcpy(long_text + 4000, "a", 2);
    CHECK(makes(long_text, "", "/a", 0), "4000 slashes");

    CHECK(wv_path_make(&p, wv_str("/a/b"), wv_str(""), "/", NULL) == 0 &&
              strcmp(wv_path_name(&p), "b") == 0,
          "the last part");
    CHECK(wv_path_make(&p, wv_str("/"), wv_str(""), "/", NULL) == 0 &&
              strcmp(wv_path_name(&p), "") == 0,
          "the root has none");
}

static void test_temps(void)
{
    char name[WV_TEMP_ROOM];

    wv_temp_name(name, UINT64_MAX);
    CHECK(strlen(name) == sizeof name - 1 && wv_temp_is(name), "a temporary name");
    wv_temp_name(name, 0);
    CHECK(wv_temp_is(name), "another");
    CHECK(!wv_temp_is(".wovyr-1.tmp"), "too few digits");
    CHECK(!wv_temp_is(".wovyr-0123456789abcdef0.tmp"), "too many digits");
    CHECK(!wv_temp_is(".wovyr-0123456789abcdef.tmp.c"), "something behind");
    CHECK(!wv_temp_is("a.wovyr-0123456789abcdef.tmp"), "something before");
}

static int matches(const char *pattern, const char *path)
{
    struct wv_glob glob;

    return wv_glob_init(&glob, pattern, strlen(pattern)) == 0 &&
           wv_glob_match(&glob, path, strlen(path));
}

static const struct {
    const char *pattern, *path;
    int match;
} globs[] = {
    {"",                   "any/thing",   1},
    {"*",                  "a",           1},
    {"*",                  "x/a",         1}, /* the last name */
    {"*.c",                "a.c",         1},
    {"*.c",                "x/y/a.c",     1},
    {"*.c",                "a.cc",        0},
    {"*.c",                ".c",          1},
    {"x/*.c",              "x/a.c",       1},
    {"x/*.c",              "x/y/a.c",     0},
    {"x/*",                "y/a",         0},
    {"**/x",               "x",           1},
    {"**/x",               "a/x",         1},
    {"**/x",               "a/b/x",       1},
    {"**/x",               "a/bx",        0},
    {"a/**/x",             "a/x",         1},
    {"a/**/x",             "a/b/c/x",     1},
    {"a/**",               "a/b/c",       1},
    {"a/**",               "a",           0},
    {"a/**",               "b/a/c",       0},
    {"**",                 "a/b",         1},
    {"**.c",               "a/b.c",       1},
    {"a**/x",              "ab/c/x",      1},
    {"?",                  "a",           1},
    {"?",                  "ab",          0},
    {"a?b",                "a/b",         0},
    {"x/?",                "x/\xff",      1},
    {"[abc]",              "b",           1},
    {"[a-c]x",             "bx",          1},
    {"[!a-c]x",            "bx",          0},
    {"[^a-c]x",            "dx",          1},
    {"[]]",                "]",           1},
    {"[a",                 "[a",          1},
    {"[[[",                "[[[",         1},
    {"[!a]/b",             "//b",         0},
    {"*.{c,h}",            "a.h",         1},
    {"*.{c,h}",            "a.o",         0},
    {"*.{c,h}",            "a.c,h",       0},
    {"{a,b{c,d}}e",        "bde",         1},
    {"{a,b{c,d}}e",        "ae",          1},
    {"{a,b{c,d}}e",        "be",          0},
    {"{,x}a",              "a",           1},
    {"{,x}a",              "xa",          1},
    {"{src,lib}/**/*.lua", "lib/a/b.lua", 1},
    {"{src,lib}/**/*.lua", "bin/a/b.lua", 0},
    {"{*}{*}",             "ab",          1},
    {"a,b",                "a,b",         1},
    {"{a,b",               "{a,b",        1},
    {"a,b}",               "a,b}",        1},
    {"}{",                 "}{",          1},
    {"{a}b,c}",            "ab,c}",       1},
    {"{a,[},]}c",          "}c",          1},
    {"\\*",                "*",           1},
    {"\\*",                "a",           0},
    {"\\{a,b\\}",          "{a,b}",       1},
    {"a\\",                "a\\",         1},
    {"a",                  "",            0},
    {"*",                  "",            1},
};

static void test_globs(void)
{
    struct wv_glob glob;

    for (size_t i = 0; i < sizeof globs / sizeof *globs; i++) {
        char name[128];

        snprintf(name, sizeof name, "'%s' and '%s'", globs[i].pattern, globs[i].path);
        CHECK(matches(globs[i].pattern, globs[i].path) == globs[i].match, name);
    }
    memset(long_text, '*', sizeof long_text);
    CHECK(wv_glob_init(&glob, long_text, 1024) < 0, "a pattern that is too long");
    CHECK(wv_glob_init(&glob, long_text, 1023) == 0 &&
              wv_glob_match(&glob, long_text, 4095) == 1,
          "stars against stars");
    for (int i = 0; i < 1023; i++)
        long_text[i] = "*a"[i % 2];
    memset(long_text + 1023, 'a', 3000);
    CHECK(wv_glob_init(&glob, long_text, 1023) == 0 &&
              wv_glob_match(&glob, long_text + 1023, 500) == 0,
          "more than there is");
    for (int i = 0; i < 1022; i++)
        long_text[i] = i == 0 ? '{' : i == 1021 ? '}' : "*,"[i % 2];
    CHECK(wv_glob_init(&glob, long_text, 1022) == 0 &&
              wv_glob_match(&glob, long_text + 1023, 3000) == 1,
          "500 alternatives that are all alike");
}

int main(void)
{
    test_paths();
    test_temps();
    test_globs();
    TEST_END();
}
