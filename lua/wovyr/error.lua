--- error.lua - what went wrong, as a value.
--
-- A plain table, so that any encoder takes it as it is. `code` comes from a closed set, the
-- same one that C and the wire use (core/base/codes.def).

---@class wovyr.Error
---@field code string one of `error.codes`
---@field op string what was being done: "open", "exec", "read", ...
---@field message string one line for people
---@field hint? string what to do about it
---@field retryable boolean whether the same call may work later
---@field retry_after? number seconds
---@field field? string the option that is wrong: "limits.disk", "cmd", "path"
---@field value? any what it was
---@field errno? integer of the failed system call
---@field reason? string why a session ended: "owner", "idle_ttl", "lifetime", "memory", ...
---@field outcome? wovyr.Outcome of a command that failed (code "failed")
---@field partial? table what is known of an effect that was not finished
---@field cause? any the error below this one
local Error = {}

local M = {}

-- In the order of their numbers on the wire; number 20, "again", never leaves the library.
M.codes = {
  "invalid", "auth", "denied", "not_found", "exists", "conflict", "unsupported", "unavailable",
  "capacity", "rate_limited", "limit", "timeout", "cancelled", "closed", "lost", "failed",
  "protocol", "unknown_outcome", "system", "again",
}

local known = {}
for number, code in ipairs(M.codes) do
  known[code] = number
end

local retryable = { unavailable = true, capacity = true, rate_limited = true, timeout = true }

-- What the errors of the few system calls that Lua makes on the host mean.
local by_errno = {
  [1] = "denied", [2] = "not_found", [12] = "limit", [13] = "denied", [16] = "conflict",
  [17] = "exists", [20] = "invalid", [21] = "invalid", [22] = "invalid", [24] = "limit",
  [27] = "limit", [28] = "limit", [30] = "denied", [36] = "invalid", [39] = "conflict",
  [40] = "invalid", [122] = "limit",
}

Error.__index = Error
Error.__name = "wovyr.Error"

function Error:__tostring()
  local message, prefix = self.message or self.code, ""
  if self.op and self.op ~= "" and message:sub(1, #self.op + 1) ~= self.op .. " " then
    prefix = self.op .. ": " -- "write /a/b: ..." names its operation already
  end
  local parts = { prefix, message }
  local notes = { self.code }
  if self.field and self.field ~= "" then
    notes[#notes + 1] = "field " .. self.field
  end
  if self.reason and self.reason ~= "" then
    notes[#notes + 1] = "reason " .. self.reason
  end
  if self.errno and self.errno ~= 0 then
    notes[#notes + 1] = ("errno %d"):format(self.errno)
  end
  parts[#parts + 1] = " [" .. table.concat(notes, ", ") .. "]"
  if self.hint then
    parts[#parts + 1] = "; " .. self.hint
  end
  return table.concat(parts)
end

function Error.__concat(a, b)
  return tostring(a) .. tostring(b)
end

--- The metatable of every error, also of those that C makes.
M.metatable = Error

--- Make an error.
---@param code string
---@param op string
---@param message string
---@param more? table further fields of the error
---@return wovyr.Error
function M.new(code, op, message, more)
  local err = { code = code, op = op, message = message, retryable = retryable[code] or false }
  if not known[code] then
    error("no such error code: " .. tostring(code), 2)
  end
  for name, value in pairs(more or {}) do
    err[name] = value
  end
  return setmetatable(err, Error)
end

--- Give a table from C the manners of an error; anything else becomes one.
---@param raw any
---@param op? string what the caller was doing, when the error does not say
---@return wovyr.Error
function M.adopt(raw, op)
  if type(raw) ~= "table" then
    return M.new("system", op or "wovyr", tostring(raw))
  end
  if raw.retryable == nil then
    raw.retryable = retryable[raw.code] or false
  end
  if op and (raw.op == nil or raw.op == "") then
    raw.op = op
  end
  if getmetatable(raw) ~= Error then
    setmetatable(raw, Error)
  end
  return raw
end

--- An ERROR message of either protocol as an error.
---@param fields table
---@param op string
---@return wovyr.Error
function M.from_message(fields, op)
  local code = fields.code
  local more = {}
  if type(code) == "number" then
    code = M.codes[code]
  end
  if not known[code] or code == "again" then
    code = "system"
  end
  if fields.sys and fields.sys ~= 0 then
    more.errno = fields.sys
  end
  for _, name in ipairs { "field", "reason" } do
    if fields[name] and fields[name] ~= "" then
      more[name] = fields[name]
    end
  end
  local message = fields.message
  if not message or message == "" then
    message = code
  end
  if fields.op and fields.op ~= "" and fields.op ~= op then
    message = fields.op .. ": " .. message
  end
  return M.new(code, op, message, more)
end

--- A failure of Lua's own io library (`nil, text, errno`).
---@param op string
---@param text string
---@param errno? integer
---@param more? table
---@return wovyr.Error
function M.from_io(op, text, errno, more)
  local err = M.new(by_errno[errno] or "system", op, tostring(text), more)
  err.errno = errno
  return err
end

--- Whether v is one of our errors.
---@param v any
---@return boolean
function M.is(v)
  return type(v) == "table" and getmetatable(v) == Error
end

--- Raise for misuse. Never returns.
---@param op string
---@param message string
---@param more? table
function M.misuse(op, message, more)
  error(M.new("invalid", op, message, more), 0)
end

return M
