#!/bin/sh
# check-lua.sh - is the Lua that the module is built for one that wovyr runs on?
# CC, VM and LUA_CFLAGS come from the Makefile.
# SPDX-License-Identifier: MIT

ask() { printf '%b\n' "$1" | $CC $LUA_CFLAGS -E - >/dev/null 2>&1; }

if ! ask '#include <lua.h>'; then
    echo "error: the headers of $VM are missing (pkg-config $VM, or LUA_INCDIR=...)." >&2
    echo "Debian: apt-get install liblua5.4-dev (VM=luajit: libluajit2-5.1-dev), or make deps" >&2
    exit 1
fi
ask '#include <lua.h>\n#if LUA_VERSION_NUM != 504\n#error\n#endif' && exit 0
ask '#include <luajit.h>' && exit 0
echo "error: wovyr runs on Lua 5.4 and on LuaJIT 2.1; the headers found are of another Lua." >&2
echo "LuaRocks: luarocks --lua-version 5.4 make ...   (its default is Lua 5.1 on Debian)" >&2
exit 1
