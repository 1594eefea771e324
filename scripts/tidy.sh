#!/bin/sh
# tidy.sh - the slow analysers: clang-tidy, cppcheck, gcc -fanalyzer. Advice, not a gate.
#
# tidy.sh [FILE]...     default: every C file
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || set -- $(find core guest -name '*.c' ! -path '*/gen/*' | sort)
[ -f build/gen/seccomp_filter.h ] || make all || exit 1
flags="-std=gnu11 -D_GNU_SOURCE -Icore -I. -Ibuild/gen -isystem /usr/include/lua5.4"

echo "== clang-tidy"
clang-tidy --quiet "$@" -- $flags 2>/dev/null
echo "== cppcheck"
cppcheck --quiet --enable=warning,performance,portability --inline-suppr --std=c11 \
    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
    -Icore -I. -Ibuild/gen -D_GNU_SOURCE "$@"
echo "== gcc -fanalyzer"
for file; do
    gcc $flags -O1 -fanalyzer -c -o /dev/null "$file"
done
