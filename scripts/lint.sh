#!/bin/sh
# lint.sh - everything that judges without running: luacheck, both parsers, warnings as errors
# (gcc and clang), shell syntax, long files
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT

check() { # what, command...
    what=$1
    shift
    if "$@" >"$log" 2>&1; then
        echo "ok      lint: $what"
        passed=$((passed + 1))
    else
        echo "not ok  lint: $what"
        sed 's/^/          /' "$log" | tail -60
        failed=$((failed + 1))
    fi
}

parse() { # command for each file, files on standard input
    bad=0
    while read -r file; do "$@" "$file" || bad=1; done
    return $bad
}

lua_both() { # what both VMs have to parse
    find lua spec -name '*.lua' ! -path 'spec/lua54/*' | parse "$@"
}

shells() {
    for file in scripts/*.sh .ci/run; do sh -n "$file" || return 1; done
}

warnings() { # VM: a tree of its own, so that what is built already hides nothing
    make BUILD=build/lint WERROR=1 VM="$1" all
}

warnings_clang() { # which calls what only a cleanup function reads unused: gcc has looked
    [ -f build/lint/gen/build_id.h ] || return 1
    find core guest -name '*.c' ! -path '*/gen/*' | sort | parse clang -fsyntax-only -std=gnu11 \
        -D_GNU_SOURCE -Icore -I. -Ibuild/lint/gen -isystem /usr/include/lua5.4 -Wall -Wextra \
        -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion \
        -Wno-sign-conversion -Wformat=2 -Wvla -Wimplicit-fallthrough -Wno-unused-variable -Werror
}

luacode=$(find lua spec examples bench rockspec bin -name '*.lua' -o -name '*.rockspec' 2>/dev/null)
# shellcheck disable=SC2086
check "luacheck" luacheck -q --no-color $luacode
check "LuaJIT parses lua/ and spec/" lua_both sh -c 'luajit -b "$1" /dev/null' sh
check "Lua 5.4 parses lua/ and spec/" lua_both luac5.4 -p
check "shell syntax" shells
check "gcc, warnings are errors, Lua 5.4" warnings lua5.4
check "gcc, warnings are errors, LuaJIT" warnings luajit
check "clang, warnings are errors" warnings_clang

echo "lint: $passed passed, $failed failed"
[ -z "$WOVYR_TOTALS" ] || echo "$passed $failed 0" >>"$WOVYR_TOTALS"
[ $failed = 0 ]
