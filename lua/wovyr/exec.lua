--- exec.lua - one command in the foreground, from start to Outcome.
--
-- Its output is lossless: it is collected in C, or handed to callbacks in the caller's
-- coroutine, and the writer waits for them. Whatever makes the caller leave (a callback that
-- raises, a cancelled task, an agent that does not answer) ends the command's whole tree.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local command = require "wovyr.command"
local core = require "wovyr.core"
local options = require "wovyr.options"
local outcome = require "wovyr.outcome"
local schema = require "wovyr.schema"
local sender = require "wovyr.sender"
local task = require "wovyr.task"

local M = {}

local GRACE = 2      -- seconds that the agent gives a tree to end
local SLACK = 2      -- and that we give the agent
local SETTLE = 3     -- to see a cancelled tree end
local KEPT = 16 * 1024 * 1024

local SOURCE = { "on_stdout", "on_stderr", "on_stdout" }

-- The call's own options over the session's.
local function limits_of(o, plan)
  local function pick(name)
    if o[name] ~= nil then
      return o[name] or nil
    end
    return plan.exec[name] or nil
  end
  local output, kill = command.output_of(pick "output")
  return { timeout = pick "timeout", cpu_time = pick "cpu_time", output = output, kill = kill }
end

-- Give the command its next piece of stdin when what it had is on its way.
local function feed(run)
  local source = run.stdin
  if not source or not run.sender:idle() or run.sender.gone then
    return false
  end
  local data = source()
  if data == nil then
    run.stdin = nil
    run.sender:finish()
  elseif type(data) ~= "string" then
    E.misuse("exec", "the stdin function must return a string or nil", { field = "stdin" })
  else
    run.sender:push(data)
  end
  return true
end

local function deliver(run, fields)
  local data = fields.data
  run.collector:add(fields.source, data)
  local fn = run.o[SOURCE[fields.source]]
  if fn then
    fn(data)
    if run.patience then
      -- The agent may have waited for the callback: that time is ours, not its.
      run.patience = math.max(run.patience, clock.now() + GRACE + SLACK)
    end
  end
  run.call.conn.link:consumed(run.call.stream, #data)
end

-- Until EXIT. Raises what a callback raises.
local function follow(run)
  local call = run.call
  while true do
    local name, fields = call:take()
    if name == "EXIT" then
      return fields
    elseif name == "STARTED" then
      run.pid = fields.pid
    elseif name == "OUTPUT" then
      deliver(run, fields)
    elseif name == "STDIN_GONE" then
      run.sender:stop(E.new("closed", "exec", "the command closed its stdin"))
    elseif name == "ERROR" then
      return nil, E.from_message(fields, "exec")
    elseif call.err then
      return nil, call.err
    elseif call.closed then
      return nil, E.new("protocol", "exec", "the answer ended early")
    elseif not feed(run) then
      local ok, err = task.wait(call.signal, run.patience, "exec")
      if not ok and call.first > call.last and not call.err then
        return nil, err
      end
    end
  end
end

-- Leave without an Outcome: nothing of the command stays.
local function abandon(run)
  local call = run.call
  if not call.closed and not call.err then
    if run.sender then
      run.sender:stop(E.new("cancelled", "exec", "left"))
    end
    call:drop()
    call.conn:flush()
    call:settle(SETTLE)
  end
end

local function give_up(session, run, err)
  local state = session.handle
  if err.code == "timeout" then
    -- The agent had to report by now; it cannot be trusted any more.
    err = E.new("lost", "exec", "the agent did not report the end of a command in time")
    state:finish("lost", err)
    session.guard:close()
    state.control:flush()
  elseif err.code == "cancelled" then
    abandon(run)
  else
    err = state:why(err, "exec")
  end
  if run.pid then
    local stdout, stderr = run.collector:take()
    err.partial = { stdout = stdout, stderr = stderr, pid = run.pid }
  end
  return nil, err
end

local function begin(session, cmd, o)
  local state = session.handle
  local limits = limits_of(o, state.plan)
  local effective = setmetatable({
    timeout = limits.timeout or false,
    cpu_time = limits.cpu_time or false,
    output = limits.output or false,
  }, { __index = o })
  local fields, err = command.fields("exec", cmd, effective, state.plan, {
    FOLLOW = true,
    OWNED = true,
    KILL_OUTPUT = limits.output and limits.kill,
  })
  if not fields then
    return nil, err
  end
  local run = { o = o, limits = limits, watch = outcome.watch(state) }
  run.patience = limits.timeout and clock.deadline(limits.timeout + GRACE + SLACK) or nil
  run.call, err = state.conn:call("exec", "START", fields, { deadline = run.patience })
  if not run.call then
    return nil, state:why(err, "exec")
  end
  local cap = limits.output or KEPT
  if o.on_stdout or o.on_stderr then
    run.collector = core.collector(cap)
  else
    run.collector = state.conn.link:collect(run.call.stream, cap)
  end
  if o.stdin then
    run.sender = sender.new(run.call, "STDIN", "STDIN_END")
    run.sender.signal = run.call.signal
    if type(o.stdin) == "string" then
      run.sender:push(o.stdin)
      run.sender:finish()
    else
      run.stdin = o.stdin
    end
  end
  return run
end

--- Run a command and wait for its end. A string runs by the shell, a table is argv.
--- Raises for a wrong option, and what a callback raises.
---@param session wovyr.Session
---@param cmd string|string[]
---@param o? wovyr.ExecOpts
---@return wovyr.Outcome? outcome also for a command that failed, timed out or was killed
---@return wovyr.Error? err it never started ("not_found", "denied", "invalid", ...), or its end
---   cannot be known ("lost", "closed", "cancelled", "unknown_outcome"; with `partial`)
function M.exec(session, cmd, o)
  o = schema.check(options.exec, o, "exec")
  if o.stdin == true then
    E.misuse("exec", "stdin = true is for start; give exec a string or a function", {
      field = "stdin",
      value = true,
    })
  end
  local state = session.handle
  local err = state:refuse "exec"
  if err then
    return nil, err
  end
  local run
  run, err = begin(session, cmd, o)
  if not run then
    return nil, err
  end
  state:enter()
  local fine, exit, why = pcall(follow, run)
  if not fine then
    abandon(run)
    state:leave()
    error(exit, 0)
  elseif not exit then
    state:leave()
    return give_up(session, run, why)
  end
  state:leave()
  local stdout, stderr = run.collector:take()
  return outcome.new(run.watch, exit, {
    timeout = run.limits.timeout,
    cpu_time = run.limits.cpu_time,
    output = run.limits.output,
    pid = run.pid,
    stdout = stdout,
    stderr = stderr,
  })
end

return M
