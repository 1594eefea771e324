-- The library is written in what Lua 5.4 and LuaJIT both parse; luacheck only sees to globals,
-- shadowing and length, `luajit -b` (scripts/lint.sh) to the syntax.
std = "min"
max_line_length = 100
codes = true
ignore = {
  "212", -- unused argument: methods and callbacks keep their full signature
  "213", -- unused loop variable
}
exclude_files = { "build/", "lua/wovyr/_meta.lua" }

-- present in one of the two VMs only, to be asked for before use
local either = { "jit", "unpack", "loadstring", "setfenv", table = { fields = { "pack", "unpack" } } }
files["lua"].read_globals = either
files["lua/wovyr/io/ngx.lua"].read_globals = { "ngx" }
files["spec"].std = "min+busted"
files["spec"].read_globals = either
files["spec"].max_line_length = 132 -- tables of cases
files["spec/lua54"].std = "lua54+busted"
files["examples"].std = "lua54"
files["bench"].std = "lua54"
files["rockspec"].std = "rockspec"
