#!/bin/sh
# check.sh - everything that has to hold before a change goes in; `make check` runs it
#
# Lint, the C units under ASan and UBSan, a fuzz minute, the specs under both VMs. As root, the
# specs run once more as an ordinary user, made for the run, from a copy of the tree. The last
# line is "N passed, N failed, N skipped" over all of it; exits non-zero unless nothing failed.
#   FUZZ=seconds in all (60)    KEEP=1 keeps the user and the copy
# SPDX-License-Identifier: MIT

cd "$(dirname "$0")/.." || exit 2
totals=$(mktemp /tmp/check.XXXXXX) || exit 2
user=wovyr-test copy=

cleanup() {
    rm -f "$totals"
    if [ -n "$copy" ] && [ -z "$KEEP" ]; then
        userdel $user >/dev/null 2>&1 || ps -u $user
        rm -rf "$copy"
    fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM
export WOVYR_TOTALS="$totals"

step() { # title, command...: a step that says nothing about totals counts when it fails
    title=$1 before=$(wc -l <"$totals")
    shift
    echo
    echo "== $title"
    "$@"
    status=$?
    if [ $status != 0 ] && [ "$(wc -l <"$totals")" = "$before" ]; then
        echo "not ok  $title: status $status"
        echo "0 1 0" >>"$totals"
    fi
    return $status
}

sum() { # first line to count from
    tail -n +"${1:-1}" "$totals" | awk '{ p += $1; f += $2; s += $3 }
        END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
}

specs() { # as whom
    first=$(($(wc -l <"$totals") + 1))
    for vm in lua5.4 luajit; do
        step "specs as $1, $vm" run_as "$1" scripts/spec.sh $vm
    done
    echo
    echo "as $1: $(sum $first)"
}

run_as() {
    who=$1
    shift
    if [ "$who" = "$(id -un)" ]; then
        "$@"
    else
        (cd "$copy" && runuser -u "$who" -- env -i PATH="$PATH" HOME="$copy/home" USER="$who" \
            LANG=C.UTF-8 CI="$CI" WOVYR_TOTALS="$totals" "$@")
    fi
}

# An ordinary user with a range of subordinate ids, and a copy of the tree that is theirs.
make_user() {
    id $user >/dev/null 2>&1 || useradd --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin $user || return 1
    grep -q "^$user:" /etc/subuid 2>/dev/null \
        || usermod --add-subuids 1000000-1065535 --add-subgids 1000000-1065535 $user || return 1
    copy=$(mktemp -d /tmp/check.XXXXXX) || return 1
    tar -cf - --exclude=./.git --exclude=./build/obj --exclude=./build/unit --exclude=./build/fuzz \
        --exclude=./build/lint --exclude=./build/san --exclude=./build/v2 \
        --exclude=./build/bench . | tar -xf - -C "$copy" || return 1
    mkdir -p "$copy/home" && chown -R $user: "$copy" && chmod 755 "$copy"
    chown $user "$totals"
}

if ! step "build" sh -c 'make all && make VM=luajit all'; then
    echo
    sum
    exit 1
fi
step "lint" scripts/lint.sh
step "C units, ASan and UBSan" make check-c
targets=$(ls spec/c/fuzz_*.c 2>/dev/null | wc -l)
[ "$targets" = 0 ] || step "fuzz" make fuzz T=$((${FUZZ:-60} / targets))
specs "$(id -un)"
if [ "$(id -u)" = 0 ]; then
    if step "an ordinary user" make_user && [ -n "$copy" ]; then
        specs $user
    fi
else
    echo
    echo "note: not root, so the part that only root can do was not tested"
fi

echo
sum
awk '{ f += $2 } END { exit f > 0 }' "$totals"
