#!/bin/sh
# units.sh - run C unit tests: units.sh PROGRAM...
#
# Each prints "ok N - name" or "not ok N - name" a test and exits non-zero on failure; the
# sanitizers end it on the spot.
# SPDX-License-Identifier: MIT

passed=0 failed=0
export ASAN_OPTIONS="abort_on_error=0:detect_leaks=1" UBSAN_OPTIONS=print_stacktrace=1
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
for program; do
    timeout -k 5 120 "$program" >"$log" 2>&1
    status=$?
    good=$(grep -c '^ok ' "$log")
    bad=$(grep -c '^not ok ' "$log")
    if [ $status != 0 ] || [ "$bad" != 0 ] || [ "$good" = 0 ]; then
        [ "$bad" != 0 ] || bad=1
        echo "not ok  ${program##*/}: $good passed, $bad failed (status $status)"
        grep -v '^ok ' "$log" | sed 's/^/          /'
    else
        echo "ok      ${program##*/}: $good passed"
    fi
    passed=$((passed + good)) failed=$((failed + bad))
done
echo "C units: $passed passed, $failed failed"
[ -z "$WOVYR_TOTALS" ] || echo "$passed $failed 0" >>"$WOVYR_TOTALS"
[ $failed = 0 ]
