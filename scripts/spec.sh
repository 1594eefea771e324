#!/bin/sh
# spec.sh - run specs under one VM, as the present user
#
# spec.sh [lua5.4|luajit] [unit|sandbox|FILE]... [-- busted options]
# Only one suite runs at a time on a machine, because each spec counts what others would leave.
# Ends with a line "<VM> <parts>: N passed, N failed, N skipped"; adds "passed failed skipped" to
# the file $WOVYR_TOTALS.
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
vm=lua5.4
case $1 in lua5.4 | luajit) vm=$1; shift ;; esac
parts=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    unit | sandbox) parts="$parts spec/$1" ;;
    *) parts="$parts $1" ;;
    esac
    shift
done
[ "$1" = -- ] && shift
parts=${parts:-spec/unit spec/sandbox}

lock=/tmp/.wovyr-spec.lock
[ -e $lock ] || (umask 0; : >$lock) 2>/dev/null
if ! exec 9<$lock || ! flock -n 9; then
    echo "spec: waiting for another suite on this machine" >&2
    flock -w 900 9 || exit 2
fi

scratch=$(mktemp -d /tmp/spec.XXXXXX) || exit 2
trap 'rm -rf "$scratch"' EXIT
export WOVYR_VM=$vm WOVYR_SPEC_TOTALS="$scratch/totals" WOVYR_SPEC_SKIPS="$scratch/skips"
: >"$WOVYR_SPEC_SKIPS"
eval "$(make -s env VM=$vm ${BUILD:+BUILD="$BUILD"})"

# A suite that hangs is a failure, not a wait: every spec has its own, much shorter limits.
# shellcheck disable=SC2086
${PRELOAD:+env LD_PRELOAD="$PRELOAD"} timeout -k 10 "${SPEC_TIMEOUT:-900}" \
    $vm /usr/bin/busted -o spec/report.lua "$@" $parts 9<&-
status=$?

if read -r passed failed skipped 2>/dev/null <"$WOVYR_SPEC_TOTALS"; then
    [ $status = 0 ] || [ "$failed" -gt 0 ] || failed=1
else
    passed=0 failed=1 skipped=0
    echo "  not ok  $vm ended with status $status before the suite did"
fi

# Skips: each must be listed and right on this machine; a listed one must not run where it cannot.
while read -r what name; do
    [ -n "$what" ] || continue
    test=$(sed -n "s/^$name:[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*-- .*/\1/p" spec/pending.txt)
    if sh -c "$test" >/dev/null 2>&1; then right=skipped; else right=ran; fi
    if [ "$what" != $right ]; then
        echo "  not ok  spec/pending.txt: $name $what here, but \`$test\` says it has to be $right"
        failed=$((failed + 1))
    fi
done <<LIST
$(sort -u "$WOVYR_SPEC_SKIPS")
LIST
listed=$(grep -c '^skipped ' "$WOVYR_SPEC_SKIPS")
if [ "$skipped" != "$listed" ]; then
    echo "  not ok  $skipped specs were skipped, $listed of them by a name in spec/pending.txt"
    failed=$((failed + 1))
fi

echo "$vm$(echo " $parts" | sed 's/ spec\// /g'): $passed passed, $failed failed, $skipped skipped"
[ -z "$WOVYR_TOTALS" ] || echo "$passed $failed $skipped" >>"$WOVYR_TOTALS"
[ "$failed" = 0 ]
