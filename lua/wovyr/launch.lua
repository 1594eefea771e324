--- launch.lua - from a command to a Process: start it, find it again, list them.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local command = require "wovyr.command"
local options = require "wovyr.options"
local outcome = require "wovyr.outcome"
local process = require "wovyr.process"
local schema = require "wovyr.schema"
local sender = require "wovyr.sender"
local task = require "wovyr.task"

local M = {}

local PATIENCE = 60 -- seconds for an answer that comes at once
local TAIL = 1048576 -- bytes of output that the agent keeps when nothing is said

-- Messages of the process's stream go to `known`, which does not hold the handle.
local function receiver(known)
  return function(name, fields)
    if name == "STARTED" then
      known.id, known.pid = fields.id, fields.pid
    elseif name == "STDIN_GONE" then
      known.stdin_gone = E.new("closed", "write", "the process closed its stdin")
      if known.sender then
        known.sender:stop(known.stdin_gone)
      end
    elseif name == "EXIT" then
      known.exit = fields
    elseif name == "ERROR" then
      known.err = E.from_message(fields, known.op)
    elseif name == "LOST" then
      known.err = fields.err
    end
    if known.sender and (known.exit or known.err) then
      known.sender:stop(known.err or E.new("closed", "write", "the process has ended"))
    end
  end
end

local function open(session, op, name, fields, known)
  local state = session.handle
  known.op = op
  local call, err = state.conn:call(op, name, fields, {
    deadline = clock.deadline(PATIENCE),
    receive = receiver(known),
  })
  if not call then
    return nil, state:why(err, op)
  end
  known.call = call
  return call
end

-- Until the process has an id, or an error says why not.
local function await_start(session, known, deadline)
  while not known.id do
    if known.err then
      return nil, session.handle:why(known.err, known.op)
    end
    local ok, err = task.wait(known.call.signal, deadline, known.op)
    if not ok and not known.id and not known.err then
      known.call:drop()
      return nil, E.new("unknown_outcome", known.op, "sent, and not answered in time", {
        cause = err,
      })
    end
  end
  return true
end

--- See Session:start.
function M.start(session, cmd, o)
  o = schema.check(options.start, o, "start")
  local state = session.handle
  local err = state:refuse "start"
  if err then
    return nil, err
  end
  local output, kill = command.output_of(o.output)
  o.output = output
  local fields
  fields, err = command.fields("start", cmd, o, state.plan, { KILL_OUTPUT = output and kill })
  if not fields then
    return nil, err
  end
  local known = {
    watch = outcome.watch(state),
    limits = { timeout = o.timeout or nil, cpu_time = o.cpu_time, output = output },
    log = o.log or TAIL,
  }
  local call, ok
  call, err = open(session, "start", "START", fields, known)
  if not call then
    return nil, err
  end
  if o.stdin ~= nil or o.pty then
    known.sender = sender.new(call, "STDIN", "STDIN_END")
  end
  if type(o.stdin) == "string" then
    known.sender:push(o.stdin)
    known.sender:finish()
  end
  ok, err = await_start(session, known, clock.deadline(PATIENCE))
  if not ok then
    return nil, err
  end
  local p = process.new(session, known, fields.tag)
  if type(o.stdin) == "function" then
    task.spawn(state.conn.io, function()
      for data in o.stdin do
        if not p:write(data) then
          return
        end
      end
      p:close_stdin()
    end)
  end
  if o.on_stdout or o.on_stderr then
    p.callbacks = { stdout = o.on_stdout, stderr = o.on_stderr, pty = o.on_stdout }
    p.follow = p:output { lossless = true }
  end
  return p
end

--- See Session:attach.
function M.attach(session, which)
  schema.argument("attach", "process", which, "string|number")
  local state = session.handle
  local err = state:refuse "attach"
  if err then
    return nil, err
  end
  local fields = {}
  if type(which) == "number" then
    local list
    list, err = M.list(session)
    for _, item in ipairs(list or {}) do
      if item.pid == which then
        fields.id, fields.tag = tonumber(item.id:sub(2)), item.tag
      end
    end
    if not fields.id then
      return nil, err or E.new("not_found", "attach", ("no process with pid %d"):format(which))
    end
  elseif which:match("^p%d+$") then
    fields.id = tonumber(which:sub(2))
  else
    fields.tag = which
  end
  local known = { watch = outcome.watch(state), limits = {}, log = TAIL }
  local call, ok
  call, err = open(session, "attach", "ATTACH", fields, known)
  if not call then
    return nil, err
  end
  known.sender = sender.new(call, "STDIN", "STDIN_END")
  ok, err = await_start(session, known, clock.deadline(PATIENCE))
  if not ok then
    return nil, err
  end
  return process.new(session, known, fields.tag)
end

local CLOSED = 5 -- WV_STATE_CLOSED

--- See Session:processes.
function M.list(session, o)
  o = schema.check(options.wait, o, "processes")
  local state = session.handle
  local err = state:refuse "processes"
  if err then
    return nil, err
  end
  local deadline = clock.deadline(o.timeout or PATIENCE)
  local call
  call, err = state.conn:call("processes", "PROCESSES", {}, { deadline = deadline })
  if not call then
    return nil, state:why(err, "processes")
  end
  local list = {}
  while true do
    local name, f = call:next(deadline)
    if not name then
      call:drop()
      return nil, state:why(f, "processes")
    elseif name ~= "PROCESS" then
      return list
    end
    list[#list + 1] = {
      id = ("p%d"):format(f.id),
      pid = f.pid,
      tag = f.tag ~= "" and f.tag or nil,
      argv = f.argv,
      cwd = f.cwd,
      user = f.user,
      started_at = f.started_ms / 1000,
      state = f.state == CLOSED and "ended" or "running",
      bytes = f.bytes,
    }
  end
end

return M
