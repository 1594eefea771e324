#!/bin/sh
# deps.sh - install what is missing from Debian's packages
#
# deps.sh [build|all]     build: enough for `make` and `make demo`; all (default): also what
#                         lint, specs and bench need
# Prints the apt-get line. Runs it without asking as root under CI (CI set) or with YES=1, or
# after a yes on a terminal. Does nothing, and quickly, when all is there.
# SPDX-License-Identifier: MIT

# a|b: either will do, the first is installed. luajit2 and its headers are OpenResty's LuaJIT;
# Debian lets only one of the two header packages in.
build="lua5.4 liblua5.4-dev luajit2|luajit libluajit2-5.1-dev|libluajit-5.1-dev gcc libc6-dev make
 binutils pkg-config|pkgconf musl-tools libseccomp-dev lua-lpeg lua-cjson python3"
test="lua-busted lua-check luarocks lua-luv lua-cqueues clang clang-format clang-tidy
 libclang-rt-14-dev cppcheck bubblewrap runc runsc qemu-system-x86 uidmap busybox-static cpio kmod strace
 git ca-certificates"

case ${1:-all} in
build) wanted=$build ;;
all) wanted="$build $test" ;;
*) echo "usage: deps.sh [build|all]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "deps: not a Debian system; wovyr needs what these Debian 12 packages hold:" >&2
    echo $wanted | fold -sw 90 | sed 's/^/  /' >&2
    echo "Install them in your system's way, then use make all, scripts/check.sh." >&2
    exit 1
fi

# one query for all: the names of those that are installed, between spaces
installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $(echo $wanted | tr '|' ' ') 2>/dev/null \
    | sed -n 's/^installed //p' | tr '\n' ' ') "
missing=
for package in $wanted; do
    found=
    for name in $(echo "$package" | tr '|' ' '); do
        case $installed in *" $name "*) found=1 ;; esac
    done
    [ -n "$found" ] || missing="$missing ${package%%|*}"
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
echo "deps: missing:$missing"
echo "deps: $install"
if [ "$(id -u)" != 0 ]; then
    echo "deps: run that as root (sudo $install), then this again" >&2
    exit 1
fi
if [ -z "$CI" ] && [ "$YES" != 1 ]; then
    if ! [ -t 0 ]; then
        echo "deps: nobody to ask; YES=1 installs without asking" >&2
        exit 1
    fi
    printf 'deps: go on? [Y/n] '
    read -r answer
    case $answer in '' | [Yy]*) ;; *) exit 1 ;; esac
fi
export DEBIAN_FRONTEND=noninteractive
$install >/dev/null 2>&1 || { apt-get update && $install; } || {
    echo "deps: apt-get could not install these. wovyr is built and tested on Debian 12; on" >&2
    echo "another release some are named differently: make all needs only the first list" >&2
    echo "in scripts/deps.sh" >&2
    exit 1
}
