#!/bin/sh
# soak.sh - the long forms of the proofs that `make check` runs short
#
# 10,000 short programs, a flood of 10 GB, a minute of random kill -9, and fuzzing for T
# seconds a target (3600). Takes T and about half an hour more.
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
status=0
export WOVYR_SHORT_PROGRAMS=10000 WOVYR_FLOOD=10G WOVYR_CRASH_SECONDS=60 SPEC_TIMEOUT=3600
scripts/spec.sh lua5.4 spec/sandbox/output_spec.lua spec/sandbox/crash_spec.lua || status=1
make fuzz T="${T:-3600}" || status=1
exit $status
