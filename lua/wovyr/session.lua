--- session.lua - the living machine.
--
-- The handle owns it: when it is closed or collected, the machine ends. `handle` is the state
-- that it shares with the control connection.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local core = require "wovyr.core"
local connection = require "wovyr.conn"
local exec = require "wovyr.exec"
local files = require "wovyr.files"
local launch = require "wovyr.launch"
local metadata = require "wovyr.metadata"
local options = require "wovyr.options"
local schema = require "wovyr.schema"
local session_state = require "wovyr.state"
local task = require "wovyr.task"
local units = require "wovyr.units"

local M = {}

local OPEN_PATIENCE = 60
local KILL_PATIENCE = 30
local PATIENCE = 30
local OWNER = 3 -- WV_REASON_OWNER

---@class wovyr.Session
---@field id string
---@field files wovyr.Files
local Session = {}
Session.__index = Session
Session.__name = "wovyr.Session"
M.Session = Session

--- Open a session of a plan. See Sandbox:open.
---@param runtime wovyr.Runtime
---@param plan table
---@param deadline number?
---@return wovyr.Session? session
---@return wovyr.Error? err
function M.open(runtime, plan, deadline)
  deadline = deadline or clock.deadline(OPEN_PATIENCE)
  local control, err = runtime:connection(deadline)
  if not control then
    return nil, err
  end
  local link, fd = core.channel()
  if not link then
    return nil, E.adopt(fd, "open")
  end
  local io = runtime.io
  local conn, call
  conn, err = connection.new(io, link)
  if not conn then
    return nil, err
  end
  local state = session_state.new(io, plan, control, conn)
  local limits = plan.limits
  call, err = control:call("open", "OPEN", {
    template = plan.template,
    memory = limits.memory,
    cpu_milli = limits.cpus and math.max(math.floor(limits.cpus * 1000 + 0.5), 1) or nil,
    pids = limits.pids,
    disk = limits.disk,
    nofile = limits.nofile,
    idle_ms = plan.idle_ttl and math.max(units.ms(plan.idle_ttl), 1) or nil,
    life_ms = plan.lifetime and math.max(units.ms(plan.lifetime), 1) or nil,
    metadata = metadata.pack(plan.metadata),
  }, {
    fd = fd,
    deadline = deadline,
    receive = function(name, fields)
      state:take_in(name, fields)
    end,
  })
  if not call then
    conn:lose(err)
    return nil, err
  end
  state.stream = call.stream
  local guard = control.link:guard(call.stream)
  while not state.id do
    if state.ended then
      return nil, M.open_error(state, plan)
    end
    local ok
    ok, err = task.wait(state.changed, deadline, "open")
    if not ok and not state.id and not state.ended then
      guard:close()
      state:finish("closed", err)
      control:flush()
      return nil, err
    end
  end
  local session = setmetatable({
    id = state.id,
    handle = state,
    guard = guard,
    runtime = runtime,
  }, Session)
  session.files = files.new(session)
  return session
end

-- Why the supervisor did not open it, with what to do about it.
function M.open_error(state, plan)
  local err = state.ended
  if err.code == "not_found" and not err.errno and not err.message:find(":build()", 1, true) then
    err.hint = ("make it with wovyr.template { name = %q, base = ... }:build()"):format(
      plan.template)
  end
  return E.new(err.code, "open", err.message, {
    field = err.field or err.code == "not_found" and "template" or nil,
    reason = err.reason,
    errno = err.errno,
    hint = err.hint,
    cause = err.cause,
  })
end

--- Run a command to its end. A string runs by the shell, a table is argv without one.
--- Raises for a wrong option, and what a callback raises.
---@param cmd string|string[]
---@param o? wovyr.ExecOpts
---@return wovyr.Outcome? outcome also of a command that failed
---@return wovyr.Error? err it never started, or its end cannot be known
function Session:exec(cmd, o)
  return exec.exec(self, cmd, o)
end

--- Start a process that runs beside what follows.
---@param cmd string|string[]
---@param o? wovyr.StartOpts
---@return wovyr.Process? process
---@return wovyr.Error? err it did not start
function Session:start(cmd, o)
  return launch.start(self, cmd, o)
end

--- Find a process again: by id ("p1"), by tag, or by the pid of one that runs.
---@param which string|integer
---@return wovyr.Process? process
---@return wovyr.Error? err "not_found"
function Session:attach(which)
  return launch.attach(self, which)
end

--- All processes that were started and are not forgotten.
---@param o? { timeout: number|string }
---@return table[]? list { id, pid, tag, argv, cwd, user, started_at, state, bytes }
---@return wovyr.Error? err
function Session:processes(o)
  return launch.list(self, o)
end

--- Where it stands, without waiting.
---@return "opening"|"running"|"paused"|"closing"|"closed"|"lost"
function Session:state()
  self.handle.changed:wait(0) -- take in what has arrived
  return self.handle.state
end

--- What is known of it.
---@return table info
function Session:info()
  local state = self.handle
  local plan = state.plan
  return {
    id = self.id,
    state = self:state(),
    template = plan.template,
    backend = plan.backend,
    level = plan.level,
    reasons = plan.reasons,
    capabilities = state.guarantees,
    guarantees = state.guarantees,
    limits = plan.limits,
    best_effort = plan.best_effort,
    shell = plan.shell,
    metadata = plan.metadata,
    started_at = state.started_at,
    ends_at = state.ends_at,
  }
end

--- This counts as use: the idle time begins anew. At most one message a second is sent.
---@return boolean? ok
---@return wovyr.Error? err "closed", "lost"
function Session:touch()
  local state = self.handle
  local err = state:refuse "touch"
  if err then
    return nil, err
  end
  local now = clock.now()
  local pause = math.min(1, (state.plan.idle_ttl or 4) / 4)
  if not state.touched_at or now - state.touched_at >= pause then
    state.touched_at = now
    state.control:post(state.stream, "TOUCH", {})
    state.control:flush()
  end
  return true
end

--- It ends this long from now, sooner or later than before.
---@param lifetime number|string
---@param o? { timeout: number|string }
---@return number? ends_at seconds since the epoch
---@return wovyr.Error? err "limit", "closed", "lost", "timeout"
function Session:extend(lifetime, o)
  local seconds, expected = units.duration(lifetime)
  if not seconds then
    E.misuse("extend", "lifetime must be " .. expected, { field = "lifetime", value = lifetime })
  end
  o = schema.check(options.wait, o, "extend")
  local state = self.handle
  local err = state:refuse "extend"
  if err then
    return nil, err
  end
  local deadline = clock.deadline(o.timeout or PATIENCE)
  local waiter = {}
  state.extending[#state.extending + 1] = waiter
  state.control:post(state.stream, "EXTEND", { life_ms = math.max(units.ms(seconds), 1) })
  state.control:flush()
  while not waiter.done do
    err = state:refuse "extend"
    if err then
      return nil, err
    end
    local ok
    ok, err = task.wait(state.changed, deadline, "extend")
    if not ok and not waiter.done then
      return nil, E.new("unknown_outcome", "extend", "sent, and not answered", { cause = err })
    end
  end
  return state.ends_at
end

--- What it uses now, by the kernel's counters outside.
---@param o? { timeout: number|string }
---@return table? usage { cpu_time, memory, memory_peak, memory_limit, disk_limit, pids, ... }
---@return wovyr.Error? err
function Session:usage(o)
  o = schema.check(options.wait, o, "usage")
  local state = self.handle
  local err = state:refuse "usage"
  if err then
    return nil, err
  end
  local used, answer = state.control:ask("usage", "USAGE", { id = self.id }, {
    deadline = clock.deadline(o.timeout or PATIENCE),
  })
  if not used then
    return nil, state:refuse "usage" or answer
  end
  local limits = state.plan.limits
  return {
    cpu_time = used.cpu_us / 1e6,
    cpus = limits.cpus,
    memory = used.memory,
    memory_peak = used.memory_peak,
    memory_limit = limits.memory,
    disk_limit = limits.disk,
    pids = used.pids,
    pids_limit = limits.pids,
    oom_kills = used.oom_kills,
    throttled = used.throttled_us / 1e6,
  }
end

--- A descriptor to poll and a step to take, for an event loop of your own.
---@return { pollfd: fun(): integer, events: fun(): string, timeout: fun(): number?, step: fun() }
function Session:poller()
  local state = self.handle
  return {
    pollfd = function()
      return state.conn.handle.pollfd()
    end,
    events = function()
      return "r"
    end,
    timeout = function()
      return nil
    end,
    step = function()
      state.changed:wait(0)
    end,
  }
end

--- Release it; the machine ends. Never waits; calls that are under way answer `closed`.
function Session:close()
  local state = self.handle
  if state.ended or state.state == "closing" then
    return
  end
  self.guard:close()
  state.control:flush()
  state.state = "closing"
  state.conn:lose(E.new("closed", "session", "the session was closed", { reason = "owner" }))
  state.changed:fire()
end

Session.__close = Session.close

--- End it for everyone and wait until it is gone: TERM to its processes, grace, then all ends.
---@param o? { grace: number|string, timeout: number|string }
---@return boolean? ok
---@return wovyr.Error? err "timeout"
function Session:kill(o)
  o = schema.check(options.kill, o, "kill")
  local state = self.handle
  local deadline = clock.deadline(o.timeout or KILL_PATIENCE + o.grace)
  if not state.ended and state.state ~= "closing" then
    self.guard:disarm()
    state.control:post(state.stream, "CLOSE", {
      reason = OWNER,
      grace_ms = math.floor(o.grace * 1000),
    })
    state.control:flush()
    state.state = "closing"
    if o.grace == 0 then
      state.conn:lose(E.new("closed", "session", "the session was killed", { reason = "owner" }))
    end
  end
  while not state.ended do
    local ok, err = task.wait(state.changed, deadline, "kill")
    if not ok and not state.ended then
      return nil, err
    end
  end
  return true
end

return M
