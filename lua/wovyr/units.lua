--- units.lua - sizes, durations, modes: from what people write to numbers, and back.
--
-- Numbers that reach text or the kernel pass `integer`: Lua 5.4 prints 1024^2 * 512 as
-- 536870912.0, which a control file refuses.

local M = {}

local SIZE = { [""] = 1, K = 1024, M = 1024 ^ 2, G = 1024 ^ 3, T = 1024 ^ 4 }
local SECONDS = { us = 1e-6, ms = 1e-3, [""] = 1, s = 1, m = 60, h = 3600, d = 86400 }
local MAX = 2 ^ 53

local function whole(n)
  return math.floor(n)
end

local function finite(n)
  return n == n and n ~= math.huge and n ~= -math.huge
end

--- Bytes from a number or "512M", "1.5G", "64KiB" (units of 1024).
---@param v any
---@return integer? bytes
---@return string? expected what was expected, when it is not a size
function M.size(v)
  local n
  if type(v) == "number" then
    n = v
  elseif type(v) == "string" then
    local digits, unit = v:match("^(%d+%.?%d*)%s*([KMGT]?)i?B?$")
    n = digits and tonumber(digits) * SIZE[unit]
  end
  if not n or not finite(n) or n < 0 or n > MAX then
    return nil, "a size in bytes or like \"512M\""
  end
  return whole(n)
end

--- Seconds from a number or "500ms", "30s", "5m", "1h", "1h30m".
---@param v any
---@return number? seconds
---@return string? expected what was expected, when it is not a duration
function M.duration(v)
  local total
  if type(v) == "number" then
    total = v
  elseif type(v) == "string" and v ~= "" then
    local rest = v
    total = 0
    while rest ~= "" do
      local digits, unit, after = rest:match("^(%d+%.?%d*)(%a*)(.*)$")
      local scale = digits and SECONDS[unit]
      if not scale then
        total = nil
        break
      end
      total, rest = total + tonumber(digits) * scale, after
    end
  end
  if not total or not finite(total) or total < 0 or total > MAX then
    return nil, "seconds or a duration like \"500ms\", \"30s\", \"5m\""
  end
  return total
end

--- Permission bits from "0644".
---@param v any
---@return integer? mode
---@return string? expected what was expected, when it is not a mode
function M.mode(v)
  if type(v) ~= "string" or not v:match("^0?[0-7][0-7][0-7][0-7]?$") then
    return nil, "a mode in octal digits, as a string like \"0644\""
  end
  return whole(tonumber(v, 8))
end

--- Permission bits as "0644".
---@param mode integer
---@return string
function M.mode_text(mode)
  return ("%04o"):format(mode % 4096)
end

--- A whole number as text that no kernel file refuses.
---@param n number
---@return string
function M.integer(n)
  return ("%.0f"):format(n)
end

--- Milliseconds for the wire: at least 1 for anything above zero.
---@param seconds number
---@return integer
function M.ms(seconds)
  return whole(math.ceil(seconds * 1000))
end

--- Bytes for people: "512M", "1536K", "100".
---@param bytes number
---@return string
function M.size_text(bytes)
  for _, unit in ipairs { "T", "G", "M", "K" } do
    local scale = SIZE[unit]
    if bytes >= scale and bytes % scale == 0 then
      return M.integer(bytes / scale) .. unit
    end
  end
  return M.integer(bytes)
end

--- Seconds for people: "60 s", "0.5 s".
---@param seconds number
---@return string
function M.seconds_text(seconds)
  return ("%.6g s"):format(seconds)
end

return M
