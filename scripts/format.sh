#!/bin/sh
# format.sh - clang-format in place; format.sh --check only tells
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
files=$(find core guest spec/c bench -name '*.[ch]' ! -name 'seccomp_filter.h' 2>/dev/null)
case $1 in
--check) exec clang-format --dry-run -Werror $files ;;
*) exec clang-format -i $files ;;
esac
