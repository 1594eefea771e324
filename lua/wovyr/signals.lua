--- signals.lua - Linux signal numbers and names.

local M = {}

local names = {
  "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
  "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
  "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
}

local numbers = {}
for number, name in ipairs(names) do
  numbers[name] = number
end

--- "KILL" for 9; "RTMIN+1" for 35.
---@param number integer
---@return string
function M.name(number)
  if number >= 34 and number <= 64 then
    return number == 34 and "RTMIN" or ("RTMIN+%d"):format(number - 34)
  end
  return names[number] or ("%d"):format(number)
end

--- 9 for "KILL", "SIGKILL" or 9; nil for what is no signal.
---@param signal string|integer
---@return integer?
function M.number(signal)
  if type(signal) == "number" then
    return signal % 1 == 0 and signal >= 1 and signal <= 64 and math.floor(signal) or nil
  end
  local name = signal:upper():gsub("^SIG", "")
  local offset = name:match("^RTMIN%+(%d+)$")
  if name == "RTMIN" or offset then
    local number = 34 + tonumber(offset or 0)
    return number <= 64 and number or nil
  end
  return numbers[name]
end

--- All names, for help with a wrong one.
M.names = names

return M
