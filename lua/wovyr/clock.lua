--- clock.lua - monotonic time, and deadlines made of patience.

local core = require "wovyr.core"

local M = {}

--- Seconds since some start; never goes back, not touched by changes of the date.
---@return number
function M.now()
  return core.now()
end

--- The moment until which a call may wait; nil waits for ever.
---@param seconds number?
---@return number?
function M.deadline(seconds)
  return seconds and core.now() + seconds or nil
end

--- The earlier of two deadlines.
---@param a number?
---@param b number?
---@return number?
function M.earlier(a, b)
  if a and b then
    return math.min(a, b)
  end
  return a or b
end

return M
