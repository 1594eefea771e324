--- process.lua - a process that was started, or found again.
--
-- It belongs to the session, not to this handle: dropping the handle changes nothing.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local options = require "wovyr.options"
local outcome = require "wovyr.outcome"
local schema = require "wovyr.schema"
local signals = require "wovyr.signals"
local stream = require "wovyr.stream"
local task = require "wovyr.task"

local M = {}

local PATIENCE = 60 -- seconds for an answer that comes at once
local HEAD = 65536

local SOURCE = { "stdout", "stderr", "pty" }
local TO = { group = 1, leader = 2, tree = 3 }
local OWNER = 3 -- WV_REASON_OWNER

---@class wovyr.Process
---@field id string "p1", never used again in this session
---@field pid integer inside the sandbox; information, not an identity
---@field tag? string
local Process = {}
Process.__index = Process
Process.__name = "wovyr.Process"
M.Process = Process

--- A handle of a process that has an id.
---@param session wovyr.Session
---@param known table what its stream has told; it does not hold the handle
---@param tag string?
---@return wovyr.Process
function M.new(session, known, tag)
  return setmetatable({
    session = session,
    known = known,
    id = "p" .. ("%d"):format(known.id),
    pid = known.pid,
    tag = tag,
  }, Process)
end

-- The error of a call on a process that is over, or nil while it lives.
function Process:refuse(op)
  local err = self.session.handle:refuse(op)
  if err then
    return err
  elseif self.known.exit then
    return E.new("closed", op, ("process %s has ended"):format(self.id), { reason = "ended" })
  end
end

function Process:ask(op, name, fields, o)
  local err = self:refuse(op)
  if err then
    return nil, err
  end
  local state = self.session.handle
  local answer, got = state.conn:ask(op, name, fields, {
    deadline = clock.deadline(o.timeout or PATIENCE),
    effect = true,
  })
  if answer then
    return true
  end
  got = state:why(got, op)
  if got.code == "not_found" then -- it was there once
    got = E.new("closed", op, ("process %s has ended"):format(self.id), { reason = "ended" })
  end
  return nil, got
end

--- Write to its stdin; pieces go in the order of the calls. Needs stdin = true or pty.
---@param data string
---@param o? { timeout: number|string }
---@return boolean? ok all bytes are on their way
---@return wovyr.Error? err "timeout", "closed" (it ended, or closed its stdin), "invalid"
---@return integer? written bytes that are on their way when not all are
function Process:write(data, o)
  schema.argument("write", "data", data, "string")
  o = schema.check(options.wait, o, "write")
  local out = self.known.sender
  local err = self:refuse "write"
  if err then
    return nil, err, 0
  elseif not out then
    return nil, E.new("invalid", "write", "the process was started without stdin", {
      field = "stdin",
      hint = "start it with stdin = true",
    }), 0
  elseif out.gone or out.finishing then
    return nil, out.gone or E.new("closed", "write", "its stdin was closed"), 0
  end
  local deadline = clock.deadline(o.timeout)
  local entry = out:push(data)
  while entry.sent < #data do
    if out.gone then
      return nil, self.session.handle:why(out.gone, "write"), entry.sent
    end
    local ok
    ok, err = task.wait(out.signal, deadline, "write")
    if not ok and entry.sent < #data and not out.gone then
      out:withdraw(entry)
      return nil, err, entry.sent
    end
  end
  self.session.handle.conn:flush()
  return true
end

--- End of its stdin, behind what was written. Never waits.
---@return boolean? ok
---@return wovyr.Error? err
function Process:close_stdin()
  local out = self.known.sender
  local err = self:refuse "close_stdin"
  if err then
    return nil, err
  elseif out and not out.gone and not out.finishing then
    out:finish()
    self.session.handle.conn:flush()
  end
  return true
end

--- Tell its terminal a new size.
---@param cols integer
---@param rows integer
---@return boolean? ok
---@return wovyr.Error? err
function Process:resize(cols, rows)
  schema.argument("resize", "cols", cols, "number")
  schema.argument("resize", "rows", rows, "number")
  local err = self:refuse "resize"
  if err then
    return nil, err
  end
  local conn = self.session.handle.conn
  conn:post(self.known.call.stream, "RESIZE", { cols = cols, rows = rows })
  conn:flush()
  return true
end

--- Send a signal: "INT", "SIGINT" or 2, to its group, its leader or its whole tree.
---@param signal string|integer
---@param o? { to: "group"|"leader"|"tree", timeout: number|string }
---@return boolean? ok
---@return wovyr.Error? err "closed" when it has ended
function Process:signal(signal, o)
  schema.argument("signal", "signal", signal, "string|number")
  o = schema.check(options.signal, o, "signal")
  local number = signals.number(signal)
  if not number then
    local near = type(signal) == "string" and schema.nearest(signal:upper(), signals.names)
    E.misuse("signal", "no such signal: " .. tostring(signal), {
      field = "signal",
      value = signal,
      hint = near and ("did you mean %q?"):format(near) or nil,
    })
  end
  return self:ask("signal", "SIGNAL", {
    id = self.known.id,
    number = number,
    to = TO[o.to],
  }, o)
end

--- End its whole tree: TERM, grace, KILL.
---@param o? { grace: number|string, timeout: number|string }
---@return boolean? ok
---@return wovyr.Error? err "closed" when it has ended
function Process:kill(o)
  o = schema.check(options.kill, o, "kill")
  return self:ask("kill", "KILL", {
    id = self.known.id,
    grace_ms = math.floor(o.grace * 1000),
    reason = OWNER,
  }, { timeout = o.timeout or PATIENCE + o.grace })
end

--- What it printed from an offset on, then what it prints, until its end. Items are
--- { stream = "stdout"|"stderr"|"pty", data, offset, gap }; gap counts bytes that the log
--- has forgotten. lossless makes the writer wait for this reader.
---@param o? { from: integer, lossless: boolean }
---@return wovyr.Stream
function Process:output(o)
  o = schema.check(options.output, o, "output")
  local state = self.session.handle
  local call, broken
  broken = state:refuse "output"
  if not broken then
    call, broken = state.conn:call("output", "FOLLOW", {
      id = self.known.id,
      from = o.from,
      lossless = o.lossless and 1 or 0,
    }, { deadline = clock.deadline(PATIENCE) })
  end
  if not call then
    return stream.new {
      next = function()
        return nil, broken
      end,
      close = function() end,
    }
  end
  local expected = o.from
  -- A stream that is simply forgotten must not make the writer wait for ever.
  local guard = state.conn.link:guard(call.stream)
  return stream.new {
    guard = guard,
    session = self.session,
    next = function(deadline)
      local name, f = call:next(deadline)
      if not name then
        return nil, state:why(f, "output")
      elseif name ~= "OUTPUT" then
        return nil
      end
      state.conn.link:consumed(call.stream, #f.data)
      local item = {
        stream = SOURCE[f.source],
        data = f.data,
        offset = f.offset,
        gap = math.max(f.offset - expected, 0),
      }
      expected = f.offset + #f.data
      return item
    end,
    close = function()
      guard:disarm()
      call:drop()
      state.conn:flush()
    end,
  }
end

-- What the log has, as stdout and stderr of the Outcome.
local function read_log(state, known, deadline)
  local err
  if not known.log_call then
    known.log_call, err = state.conn:call("wait", "FOLLOW", { id = known.id }, {
      deadline = deadline,
    })
    if not known.log_call then
      return err
    end
    known.collector = state.conn.link:collect(known.log_call.stream, 2 * (HEAD + known.log))
  end
  while true do
    local name, f = known.log_call:next(deadline)
    if not name then
      return f
    elseif name == "END" then
      return nil
    end
  end
end

local function finish(self, deadline)
  local state, known = self.session.handle, self.known
  local err = not known.log_read and read_log(state, known, deadline)
  if err and (err.code == "timeout" or err.code == "cancelled") then
    return nil, err
  end
  known.log_read = true -- also when the log is gone: the end is known all the same
  if known.collector and not known.stdout then
    known.stdout, known.stderr = known.collector:take()
  end
  return outcome.new(known.watch, known.exit, {
    timeout = known.limits.timeout,
    cpu_time = known.limits.cpu_time,
    output = known.limits.output,
    pid = known.pid,
    stdout = known.stdout,
    stderr = known.stderr,
  })
end

local function run_callbacks(p, deadline)
  while p.follow do
    local remaining = deadline and math.max(deadline - clock.now(), 0) or nil
    local item, err = p.follow:next { timeout = remaining }
    if err and (err.code == "timeout" or err.code == "cancelled") then
      return err
    elseif not item then
      p.follow = nil
    else
      local fn = p.callbacks[item.stream]
      if fn then
        fn(item.data)
      end
    end
  end
end

--- Wait for its end. stdout and stderr of the Outcome are what its log has.
---@param o? { timeout: number|string }
---@return wovyr.Outcome? outcome
---@return wovyr.Error? err "timeout" changes nothing; "lost", "closed", "unknown_outcome"
function Process:wait(o)
  o = schema.check(options.wait, o, "wait")
  local state, known = self.session.handle, self.known
  local deadline = clock.deadline(o.timeout)
  local err = self.follow and run_callbacks(self, deadline)
  if err then
    return nil, err
  end
  local signal = known.call.signal
  while true do
    if known.outcome or known.failure then
      return known.outcome, known.failure
    elseif known.exit and not known.finishing then
      known.finishing = true
      local out
      out, err = finish(self, deadline)
      known.finishing = false
      if out then
        known.outcome = out
      elseif err.code ~= "timeout" and err.code ~= "cancelled" then
        known.failure = state:why(err, "wait")
      end
      signal:fire()
      if not known.outcome and not known.failure then
        return nil, err
      end
    elseif known.err then
      return nil, state:why(known.err, "wait")
    else
      local ok
      ok, err = task.wait(signal, deadline, "wait")
      if not ok and (known.finishing or not (known.exit or known.err)) then
        return nil, err
      end
    end
  end
end

return M
