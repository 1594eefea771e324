#!/bin/sh
# fuzz.sh - run fuzz targets: T=seconds fuzz.sh PROGRAM...
#
# Seeds are in spec/c/corpus/<name>; what is found on the way goes to a scratch corpus beside the
# program, a crash to build/fuzz/crash-<name>-*, which is printed and fails the run.
# SPDX-License-Identifier: MIT

passed=0 failed=0
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
for program; do
    name=${program##*/fuzz_}
    seeds=spec/c/corpus/$name
    [ -d "$seeds" ] || seeds=
    mkdir -p "$program.corpus"
    # -timeout: one input may not take 5 s; -rss_limit_mb: nor 512 MB
    if "$program" -max_total_time="${T:-20}" -timeout=5 -rss_limit_mb=512 -max_len=70000 \
        -print_final_stats=1 -artifact_prefix="${program%/*}/crash-$name-" \
        "$program.corpus" $seeds >"$program.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$program.log")
        echo "ok      fuzz_$name: $runs runs in ${T:-20} s"
        passed=$((passed + 1))
    else
        echo "not ok  fuzz_$name"
        tail -40 "$program.log" | sed 's/^/          /'
        failed=$((failed + 1))
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ -z "$WOVYR_TOTALS" ] || echo "$passed $failed 0" >>"$WOVYR_TOTALS"
[ $failed = 0 ]
