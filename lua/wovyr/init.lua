--- wovyr - a living, isolated computer for code that nobody has read.
--
--     local wovyr = require "wovyr"
--     local session = assert(wovyr.open { trust = "verified" })
--     print(session:exec("uname -a"):check().stdout)
--     session:close()
--
-- Requiring it starts nothing.

-- Waiting calls yield across pcall, metamethods and iterators: PUC 5.1 cannot.
if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then
  error("wovyr needs Lua 5.4 or LuaJIT 2.1; this is " .. _VERSION, 0)
end

-- Each name, and the part of the library that has it.
local parts = {
  runtime = "wovyr.runtime", sandbox = "wovyr.runtime", open = "wovyr.runtime",
  run = "wovyr.runtime", connect = "wovyr.runtime", list = "wovyr.runtime",
  node = "wovyr.runtime", metrics = "wovyr.runtime", template = "wovyr.runtime",
  templates = "wovyr.runtime", spawn = "wovyr.runtime", all = "wovyr.runtime",
  with = "wovyr.runtime",
}

return setmetatable({ _VERSION = "0.1.0" }, {
  __index = function(wovyr, name)
    local part = parts[name]
    local value = part and require(part)[name]
    rawset(wovyr, name, value)
    return value
  end,
})
