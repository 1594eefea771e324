--- state.lua - what is true of a session, shared by its handles and the control connection.
--
-- opening -> running <-> paused -> closing -> closed, with `lost` when the far side vanished.
-- It is kept apart from the Session that users hold, so that a forgotten Session can be
-- collected, and with it the machine.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local outcome = require "wovyr.outcome"

local M = {}

-- How long a broken session connection waits for the supervisor to say why.
local WHY = 2

local STATE = { "opening", "running", "paused", "closing", "closed", "lost" }

---@class wovyr.State
local State = {}
State.__index = State
State.__name = "wovyr.State"

local no_use = { oom_kills = 0, pids_hits = 0, throttled_us = 0, memory_hits = 0 }

--- A session that is being opened.
---@param io table
---@param plan table
---@param control wovyr.Conn
---@param conn wovyr.Conn
---@return wovyr.State
function M.new(io, plan, control, conn)
  return setmetatable({
    state = "opening",
    plan = plan,
    control = control,
    conn = conn,
    changed = io.signal(),
    extending = {},
    busy = 0,
    starts = 0,
    used = no_use, -- a fresh session has counted nothing
    used_at = 0,
    running = 0,
    guarantees = plan.guarantees,
  }, State)
end

--- "name=state=evidence" strings as a table.
---@param list string[]
---@return table<string, { state: string, evidence: string }>
function M.facts(list)
  local facts = {}
  for _, item in ipairs(list or {}) do
    local name, state, evidence = item:match("^([^=]+)=([^=]*)=?(.*)$")
    if name then
      facts[name] = { state = state, evidence = evidence }
    end
  end
  return facts
end

-- A sandbox without a memory, pids or cpu group has no counters to ask for.
local function has_counters(guarantees)
  for _, name in ipairs { "memory", "pids", "cpu", "oom_evidence" } do
    local g = guarantees[name]
    if g and g.state == "enforced" then
      return true
    end
  end
  return false
end

function State:finish(state, err)
  if self.ended then
    return
  end
  self.state, self.ended = state, err
  -- What the agent said before its end is still worth hearing.
  if not self.conn.err then
    self.conn:flush()
    while self.conn:dispatch() do
      self.conn:flush()
    end
    self.conn:lose(err)
  end
end

--- A message of the session's control stream.
function State:take_in(name, fields)
  if name == "OPENED" then
    self.id = fields.id
    self.started_at = fields.started_ms / 1000
    self.ends_at = fields.ends_ms ~= 0 and fields.ends_ms / 1000 or nil
    local told = M.facts(fields.guarantees)
    if next(told) then
      self.guarantees = told
    end
    self.counts = has_counters(self.guarantees)
    if self.state == "opening" then
      self.state = "running"
    end
  elseif name == "EXTENDED" then
    self.ends_at = fields.ends_ms ~= 0 and fields.ends_ms / 1000 or nil
    local waiter = table.remove(self.extending, 1)
    if waiter then
      waiter.done = true
    end
  elseif name == "SESSION_END" then
    local reason = outcome.reasons[fields.reason]
    local state = STATE[fields.state] == "lost" and "lost" or "closed"
    local text = state == "lost" and "the session was lost" or "the session has ended"
    if fields.detail and fields.detail ~= "" then
      text = text .. ": " .. fields.detail
    end
    self:finish(state, E.new(state, "session", text, {
      reason = reason,
      oom_kills = fields.oom_kills,
    }))
  elseif name == "ERROR" then
    self.refusal = E.from_message(fields, "open")
    self:finish("closed", self.refusal)
  elseif name == "LOST" and fields.err.code == "closed" then -- we hung up
    self:finish("closed", E.new("closed", "session", "the runtime was closed", {
      reason = "owner",
    }))
  elseif name == "LOST" then
    self:finish("lost", E.new("lost", "session", "the supervisor is gone", {
      cause = fields.err,
      reason = fields.err.reason,
    }))
  end
  self.changed:fire()
end

--- The error of a call on a session that is over, or nil while it lives.
---@param op string
---@return wovyr.Error?
function State:refuse(op)
  local ended = self.ended
  if ended then
    return E.new(ended.code, op, ended.message, { reason = ended.reason, cause = ended.cause })
  elseif self.state == "closing" then
    return E.new("closed", op, "the session was closed", { reason = "owner" })
  elseif self.conn.err then
    return self:why(self.conn.err, op)
  end
end

--- The reason behind a broken connection: the supervisor knows more than an end of file.
---@param err wovyr.Error
---@param op string
---@return wovyr.Error
function State:why(err, op)
  if not self.conn.err or err ~= self.conn.err then
    return err
  end
  local deadline = clock.deadline(WHY)
  while not self.ended and not self.control.err do
    if not self.changed:wait(deadline) then
      self:finish("lost", err)
      self.control:post(self.stream, "CLOSE", {})
    end
  end
  local ended = self.ended or err
  return E.new(ended.code, op, ended.message, {
    reason = ended.reason,
    cause = ended.cause,
    partial = err.partial,
  })
end

--- A foreground exec begins: the session is not idle until it ends.
function State:enter()
  self.busy = self.busy + 1
  if self.busy == 1 and self.plan.idle_ttl and not self.ended then
    self.control:post(self.stream, "BUSY", { on = 1 })
    self.control:flush()
  end
end

--- A foreground exec ended.
function State:leave()
  self.busy = self.busy - 1
  if self.busy == 0 and self.plan.idle_ttl and not self.ended then
    self.control:post(self.stream, "BUSY", { on = 0 })
    self.control:flush()
  end
end

return M
