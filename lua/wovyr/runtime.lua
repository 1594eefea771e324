--- runtime.lua - a supervisor of our own, and what is asked of it.
--
-- Theory of operation. Nothing runs until the first use. The supervisor belongs to this
-- process and ends with it; when it is gone, its sessions are lost and the next use starts
-- another. One control connection carries every session's stream, usage and templates.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local connection = require "wovyr.conn"
local core = require "wovyr.core"
local metadata = require "wovyr.metadata"
local options = require "wovyr.options"
local policy = require "wovyr.policy"
local sandbox = require "wovyr.sandbox"
local schema = require "wovyr.schema"
local session_state = require "wovyr.state"
local task = require "wovyr.task"
local template = require "wovyr.template"

local M = {}

local NODE_PATIENCE = 30
local PATIENCE = 30

core.error_metatable(E.metatable)

---@class wovyr.Runtime
local Runtime = {}
Runtime.__index = Runtime
Runtime.__name = "wovyr.Runtime"
M.Runtime = Runtime

-- A configuration is a Lua file of plain data: it sees no globals.
local function load_config(config)
  if type(config) ~= "string" then
    return config
  end
  local chunk, text = loadfile(config, "t", {})
  if not chunk then
    return nil, E.new("invalid", "config", tostring(text), { field = "config", value = config })
  end
  local ok, value = pcall(chunk)
  if not ok or type(value) ~= "table" then
    return nil, E.new("invalid", "config",
      ok and "the file must return a table" or tostring(value),
      { field = "config", value = config })
  end
  return value
end

--- A runtime of its own. Raises for a wrong option.
---@param o? { config: string|table, loop: string, service: string, token: string, tenant: string }
---@return wovyr.Runtime? runtime
---@return wovyr.Error? err "invalid" (configuration), "unsupported"
function M.new(o)
  o = schema.check(options.runtime, o, "runtime")
  if o.service then
    return nil, E.new("unsupported", "runtime", "service mode is not built in this version", {
      field = "service",
    })
  elseif o.loop and o.loop ~= "poll" then
    return nil, E.new("unsupported", "runtime", "only plain scripts in this version", {
      field = "loop",
      value = o.loop,
    })
  end
  local config, err = load_config(o.config)
  if err then
    return nil, err
  end
  return setmetatable({
    io = require "wovyr.io.poll",
    config = config,
    sessions = setmetatable({}, { __mode = "v" }),
    keys = {},
    counts = { opens = 0, open_errors = 0 },
  }, Runtime)
end

--- The control connection, started when there is none.
---@param deadline number?
---@return wovyr.Conn? control
---@return wovyr.Error? err
function Runtime:connection(deadline)
  if self.closed then
    return nil, E.new("closed", "runtime", "the runtime was closed", { reason = "owner" })
  end
  if self.control then
    self.known.changed:wait(0) -- the supervisor may have gone since we looked
  end
  if not self.control or self.control.err then
    local link, err = core.start {}
    if not link then
      return nil, E.adopt(err, "start")
    end
    local known = { changed = self.io.signal() }
    local control
    control, err = connection.new(self.io, link, function(name, fields)
      if name == "NODE" then
        known.facts = session_state.facts(fields.facts)
      end
      known.changed:fire()
    end)
    if not control then
      return nil, err
    end
    self.control, self.known = control, known
  end
  local control, known = self.control, self.known
  deadline = deadline or clock.deadline(NODE_PATIENCE)
  while not known.facts do
    if control.err then
      return nil, E.new("unavailable", "start", "the supervisor ended at once", {
        cause = control.err,
        hint = "set WOVYR_DEBUG=1 to see what it says",
      })
    end
    local ok, err = task.wait(known.changed, deadline, "start")
    if not ok and not known.facts and not control.err then
      return nil, err
    end
  end
  return control
end

--- What this machine can do, each with the evidence that proved it.
---@param o? { timeout: number|string }
---@return table? node { backends = { container = { available, missing, guarantees } }, ... }
---@return wovyr.Error? err
function Runtime:node(o)
  o = schema.check(options.wait, o, "node")
  local control, err = self:connection(clock.deadline(o.timeout))
  if not control then
    return nil, err
  end
  local facts = self.known.facts
  local container = facts.container
  local missing = container and container.state == "absent" and container.evidence or nil
  return {
    backends = {
      container = { available = not missing, missing = missing, guarantees = facts },
    },
    capabilities = facts,
    build = core.BUILD,
    version = core.VERSION,
  }
end

--- Check a recipe and decide. Runs nothing of it. Raises for a wrong option.
---@param spec? wovyr.Spec
---@return wovyr.Sandbox? sandbox
---@return wovyr.Error? err "unavailable", "unsupported", "invalid", "not_found"
function Runtime:sandbox(spec)
  policy.layers(spec, self.config) -- misuse is reported before anything is started
  local node, plan, err
  node, err = self:node()
  if not node then
    return nil, err
  end
  plan, err = policy.plan(spec, self.config, node)
  if not plan then
    return nil, err
  end
  return sandbox.new(self, plan)
end

--- Open a plan, or find the session that its key has opened. For Sandbox.
function Runtime:open_plan(plan, key, deadline, open)
  local recipe = key and policy.canonical(plan.spec)
  local kept = key and self.keys[key]
  local before = kept and self.sessions[kept.id]
  local live = before and before.handle
  if live and not live.ended and live.state ~= "closing" then
    if kept.recipe ~= recipe then
      return nil, E.new("conflict", "open", ("key %q belongs to another recipe"):format(key), {
        field = "key",
        value = key,
      })
    end
    return before
  end
  local session, err = open(self, plan, deadline)
  if not session and err.code == "lost" and self.control and self.control.err then
    session, err = open(self, plan, deadline) -- that supervisor is gone, with all it had begun
  end
  if not session then
    self.counts.open_errors = self.counts.open_errors + 1
    return nil, err
  end
  self.counts.opens = self.counts.opens + 1
  self.sessions[session.id] = session
  if key then
    self.keys[key] = { recipe = recipe, id = session.id }
  end
  return session
end

--- Open a session. Raises for a wrong option.
---@param spec? wovyr.Spec
---@param o? { key: string, timeout: number|string }
---@return wovyr.Session? session
---@return wovyr.Error? err
function Runtime:open(spec, o)
  schema.check(options.open, o, "open")
  local recipe, err = self:sandbox(spec)
  if not recipe then
    return nil, err
  end
  return recipe:open(o)
end

--- Open, run one command, end it all.
---@param cmd string|string[]
---@param spec? wovyr.Spec
---@param o? wovyr.ExecOpts
---@return wovyr.Outcome? outcome
---@return wovyr.Error? err
function Runtime:run(cmd, spec, o)
  schema.argument("run", "cmd", cmd, "string|table")
  schema.check(options.exec, o, "run")
  local session, err = self:open(spec)
  if not session then
    return nil, err
  end
  local fine, outcome, why = pcall(session.exec, session, cmd, o)
  if not fine then
    session:close()
    error(outcome, 0)
  end
  session:kill()
  return outcome, why
end

--- A session of this runtime, by its id.
---@param id string
---@return wovyr.Session? session
---@return wovyr.Error? err "not_found"
function Runtime:connect(id)
  schema.argument("connect", "id", id, "string")
  local session = self.sessions[id]
  local state = session and session.handle
  if not state or state.ended or state.state == "closing" then
    return nil, E.new("not_found", "connect", "no such session", { field = "id", value = id })
  end
  return session
end

local STATES = { "opening", "running", "paused", "closing", "closed", "lost" }

local function matches(info, o)
  for name, value in pairs(o.metadata or {}) do
    if info.metadata[name] ~= value then
      return false
    end
  end
  return (not o.state or info.state == o.state)
    and (not o.template or info.template == o.template)
    and (not o.started_after or info.started_at > o.started_after)
end

-- Read a listing: one kind of message, then END.
local function read_list(control, op, name, fields, item, deadline, each)
  local call, err = control:call(op, name, fields, { deadline = deadline })
  if not call then
    return nil, err
  end
  while true do
    local got, f = call:next(deadline)
    if not got then
      call:drop()
      return nil, f
    elseif got ~= item then
      return true
    end
    each(f)
  end
end

--- The live sessions.
---@param o? table metadata, state, template, started_after, order, limit, after, timeout
---@return table[]? infos
---@return string|wovyr.Error|nil next cursor of the next page, or err
function Runtime:list(o)
  o = schema.check(options.sessions, o, "list")
  local deadline = clock.deadline(o.timeout or PATIENCE)
  local control, err = self:connection(deadline)
  if not control then
    return nil, err
  end
  local infos, ok = {}
  ok, err = read_list(control, "list", "SESSIONS", {}, "SESSION", deadline, function(f)
    local info = {
      id = f.id,
      state = STATES[f.state],
      template = f.template,
      metadata = metadata.unpack(f.metadata),
      started_at = f.started_ms / 1000,
      ends_at = f.ends_ms ~= 0 and f.ends_ms / 1000 or nil,
    }
    if matches(info, o) then
      infos[#infos + 1] = info
    end
  end)
  if not ok then
    return nil, err
  end
  local sign = o.order == "newest" and -1 or 1
  table.sort(infos, function(a, b)
    if a.started_at ~= b.started_at then
      return a.started_at * sign < b.started_at * sign
    end
    return a.id < b.id
  end)
  local first = 1
  for i, info in ipairs(infos) do
    if o.after == info.id then
      first = i + 1
    end
  end
  local page = {}
  for i = first, math.min(first + o.limit - 1, #infos) do
    page[#page + 1] = infos[i]
  end
  local more = first + o.limit - 1 < #infos
  return page, more and page[#page].id or nil
end

--- Counters since the start.
---@return table
function Runtime:metrics()
  local live = 0
  for _, session in pairs(self.sessions) do
    if not session.handle.ended and session.handle.state ~= "closing" then
      live = live + 1
    end
  end
  return { opens = self.counts.opens, open_errors = self.counts.open_errors, sessions = live }
end

--- A template definition; see template.lua.
---@param def table { name, base = { tree = directory } | { tar = file } }
---@return wovyr.Template
function Runtime:template(def)
  return template.new(self, def)
end

--- The templates that are built on this machine.
---@param o? { kind: string, timeout: number|string }
---@return table[]? infos { name, built_at }
---@return wovyr.Error? err
function Runtime:templates(o)
  o = schema.check(options.templates, o, "templates")
  local deadline = clock.deadline(o.timeout or PATIENCE)
  local control, err = self:connection(deadline)
  if not control then
    return nil, err
  end
  local infos, ok = {}
  ok, err = read_list(control, "templates", "TEMPLATES", {}, "TEMPLATE", deadline, function(f)
    infos[#infos + 1] = { name = f.name, built_at = f.built_ms / 1000 }
  end)
  if not ok then
    return nil, err
  end
  return infos
end

--- Run fn(...) in a coroutine of its own.
---@param fn function
---@return wovyr.Task
function Runtime:spawn(fn, ...)
  return task.spawn(self.io, fn, ...)
end

--- Run all functions; the first failure cancels the rest.
---@param fns function[]
---@param o? { limit: integer, timeout: number|string }
---@return any[]? results in order
---@return wovyr.Error? err
function Runtime:all(fns, o)
  return task.all(self.io, fns, o)
end

--- fn(obj, ...), then obj:close(), also when fn raises.
function Runtime:with(obj, fn, ...) -- luacheck: no self
  return task.with(obj, fn, ...)
end

--- End the supervisor and every session of this runtime. Never waits.
function Runtime:close()
  if self.closed then
    return
  end
  self.closed = true
  for _, session in pairs(self.sessions) do
    session:close()
  end
  if self.control then
    self.control:lose(E.new("closed", "runtime", "the runtime was closed", { reason = "owner" }))
  end
end

Runtime.__close = Runtime.close

local default

local function shared()
  if not default or default.closed then
    default = assert(M.new {})
  end
  return default
end

-- The functions of the module: methods of a runtime that is made by the first use.
for _, name in ipairs {
  "sandbox", "open", "run", "connect", "list", "node", "metrics", "template", "templates", "spawn",
  "all", "with",
} do
  M[name] = function(...)
    local runtime = shared()
    return runtime[name](runtime, ...)
  end
end

M.runtime = M.new

return M
