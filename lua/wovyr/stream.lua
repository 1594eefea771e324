--- stream.lua - things that come one after the other.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local options = require "wovyr.options"
local schema = require "wovyr.schema"

local M = {}

---@class wovyr.Stream `for item in stream do` raises the error of a broken stream
local Stream = {}
Stream.__index = Stream
Stream.__name = "wovyr.Stream"
M.Stream = Stream

--- source.next(deadline) -> item | nil | nil, err; source.close().
---@param source { next: fun(deadline: number?): any, close: fun() }
---@return wovyr.Stream
function M.new(source)
  return setmetatable({ source = source }, Stream)
end

--- The next item; nil at the end; `nil, err` when it broke or patience ran out.
---@param o? { timeout: number|string }
---@return any item
---@return wovyr.Error? err
function Stream:next(o)
  local deadline = o and clock.deadline(schema.check(options.wait, o, "next").timeout)
  if self.ended then
    return nil, self.broken
  elseif self.closed then
    return nil, E.new("closed", "next", "the stream was closed", { reason = "owner" })
  end
  local item, err = self.source.next(deadline)
  if item == nil and not (err and (err.code == "timeout" or err.code == "cancelled")) then
    self.ended, self.broken = true, err
    self:close()
  end
  return item, err
end

--- Stop. Never waits.
function Stream:close()
  if not self.closed then
    self.closed = true
    self.source.close()
  end
end

Stream.__close = Stream.close

function Stream:__call()
  local item, err = self:next()
  if err then
    error(err, 0)
  end
  return item
end

return M
