--- metadata.lua - a session's own words as one string, and back.

local M = {}

local function escape(text)
  return (text:gsub("[%%=\n]", function(c)
    return ("%%%02x"):format(c:byte())
  end))
end

local function unescape(text)
  return (text:gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

--- "name=value" lines, sorted, so that equal tables give equal strings.
---@param words table<string, string>
---@return string
function M.pack(words)
  local lines = {}
  for name, value in pairs(words) do
    lines[#lines + 1] = escape(name) .. "=" .. escape(value)
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end

---@param packed string
---@return table<string, string>
function M.unpack(packed)
  local words = {}
  for line in packed:gmatch("[^\n]+") do
    local name, value = line:match("^([^=]*)=(.*)$")
    if name then
      words[unescape(name)] = unescape(value)
    end
  end
  return words
end

return M
