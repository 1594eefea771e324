#!/bin/sh
# san.sh - the specs with the module under ASan (leaks too) and the static parts under UBSan
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
make SAN=1 BUILD=build/san VM=lua5.4 all || exit 1
# Lua's own allocations at exit and dlopen'ed modules are not ours to judge
echo 'leak:/usr/bin/lua5.4
leak:liblua5.4
leak:lfs
leak:dlopen' >build/san/suppressions
export BUILD=build/san
export PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/build/san/suppressions:print_suppressions=0
exec scripts/spec.sh lua5.4 "${@:-unit}"
