rockspec_format = "3.0"
package = "wovyr"
version = "dev-1"

-- Built in the tree: luarocks --lua-version 5.4 make rockspec/wovyr-dev-1.rockspec
-- Needs no network: what it takes beside Lua are gcc, make, libseccomp's headers and, for the
-- small static agent, musl-gcc. The four outcomes:
--   Lua 5.4 or LuaJIT      the module, with supervisor and agent inside it
--   no musl-gcc            the same, larger, with a note
--   no libseccomp headers  stops, and names the package
--   Lua 5.1, 5.2, 5.3      stops, and says how to ask LuaRocks for 5.4
source = { url = "git+file://." }

description = {
  summary = "Embedded sandboxes: a living, isolated computer for code that nobody has read",
  license = "MIT",
  labels = { "sandbox", "security", "linux" },
}

supported_platforms = { "linux" }

-- LuaRocks cannot say "LuaJIT, but not Lua 5.1": the Makefile looks at the headers.
dependencies = { "lua >= 5.1, < 5.5" }

build = {
  type = "make",
  build_target = "all",
  build_variables = {
    CC = "$(CC)",
    CFLAGS = "$(CFLAGS)",
    LUA_INCDIR = "$(LUA_INCDIR)",
    BUILD = "build/rock",
  },
  install_target = "install-lua",
  install_variables = {
    CC = "$(CC)",
    CFLAGS = "$(CFLAGS)",
    LUA_INCDIR = "$(LUA_INCDIR)",
    BUILD = "build/rock",
    LUADIR = "$(LUADIR)",
    LIBDIR = "$(LIBDIR)",
  },
}
