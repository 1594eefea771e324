--- task.lua - functions that run beside each other, and the one way to wait.
--
-- Cancelling is cooperative: the task's current or next wait answers `cancelled`.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local options = require "wovyr.options"
local schema = require "wovyr.schema"

local M = {}

local running = setmetatable({}, { __mode = "k" }) -- coroutine -> its task
local unpack = rawget(table, "unpack") or rawget(_G, "unpack")

local function pack(...)
  return { n = select("#", ...), ... }
end

--- Wait for a signal as the running task: every wait of the library comes through here.
---@param signal wovyr.Signal
---@param deadline number?
---@param op string
---@return boolean? fired
---@return wovyr.Error? err "timeout", "cancelled"
function M.wait(signal, deadline, op)
  local co = coroutine.running()
  local task = co and running[co]
  if task and task.cancelled then
    return nil, E.new("cancelled", op, "the task was cancelled")
  end
  if task then
    task.waiting = signal
  end
  local fired = signal:wait(deadline)
  if task then
    task.waiting = nil
    if task.cancelled then
      return nil, E.new("cancelled", op, "the task was cancelled")
    end
  end
  if not fired then
    return nil, E.new("timeout", op, "patience ran out")
  end
  return true
end

---@class wovyr.Task
local Task = {}
Task.__index = Task
Task.__name = "wovyr.Task"
M.Task = Task

local function settle(task, ok, values)
  if not ok then
    local raised = values[1]
    if E.is(raised) then
      task.err = raised
    else
      task.err = E.new("failed", "task", "the function raised: " .. tostring(raised), {
        cause = raised,
      })
    end
    values = { n = 2, nil, task.err }
  end
  task.values, task.done = values, true
  task.signal:fire()
  for _, fn in ipairs(task.callbacks) do
    fn(values[1], values[2])
  end
end

--- Run fn(...) in a coroutine of its own.
---@param io table the loop's adaptor
---@param fn function
---@return wovyr.Task
function M.spawn(io, fn, ...)
  schema.argument("spawn", "fn", fn, "function")
  local task = setmetatable({ done = false, signal = io.signal(), callbacks = {} }, Task)
  local arguments = pack(...)
  io.spawn(function()
    if task.cancelled then
      return settle(task, false, { E.new("cancelled", "task", "cancelled before it ran") })
    end
    local co = coroutine.running()
    running[co] = task
    local result = pack(pcall(fn, unpack(arguments, 1, arguments.n)))
    running[co] = nil
    local values = { n = result.n - 1 }
    for i = 2, result.n do
      values[i - 1] = result[i]
    end
    settle(task, result[1], values)
  end)
  return task
end

--- The function's values; what it raised comes as `nil, err`.
---@param o? { timeout: number|string }
---@return any ...
function Task:wait(o)
  local deadline = clock.deadline(schema.check(options.wait, o, "wait").timeout)
  while not self.done do
    local ok, err = M.wait(self.signal, deadline, "wait")
    if not ok and not self.done then
      return nil, err
    end
  end
  return unpack(self.values, 1, self.values.n)
end

--- Ask it to stop: its current or next wait answers `cancelled`.
function Task:cancel()
  if not self.done and not self.cancelled then
    self.cancelled = true
    if self.waiting then
      self.waiting:fire()
    end
  end
end

--- Call fn(value, err) at its end; at once when it has ended.
---@param fn fun(value: any, err: wovyr.Error?)
function Task:on_done(fn)
  schema.argument("on_done", "fn", fn, "function")
  if self.done then
    fn(self.values[1], self.values[2])
  else
    self.callbacks[#self.callbacks + 1] = fn
  end
end

--- Run all functions, at most o.limit at once; the first failure cancels the rest.
---@param io table the loop's adaptor
---@param fns function[]
---@param o? { limit: integer, timeout: number|string }
---@return any[]? results in order
---@return wovyr.Error? err of the first that failed
function M.all(io, fns, o)
  schema.argument("all", "fns", fns, "table")
  o = schema.check(options.all, o, "all")
  local deadline = clock.deadline(o.timeout)
  local changed, tasks, results = io.signal(), {}, {}
  local started, ended, failure = 0, 0, nil

  local function start_more()
    while not failure and started < #fns and (not o.limit or started - ended < o.limit) do
      started = started + 1
      local index = started
      local task = M.spawn(io, fns[index])
      tasks[index] = task
      task:on_done(function(value, err)
        ended = ended + 1
        results[index] = value
        if value == nil and err ~= nil and not failure then
          failure = err
        end
        changed:fire()
      end)
    end
  end

  start_more()
  while ended < started do
    local ok, err = M.wait(changed, deadline, "all")
    if not ok then
      failure = failure or err
    end
    if failure then
      for _, task in ipairs(tasks) do
        task:cancel()
      end
      -- They stop at their next wait; nothing of theirs may go on when we have returned.
      while ended < started do
        changed:wait(nil)
      end
      return nil, failure
    end
    start_more()
  end
  return results
end

--- fn(obj, ...), then obj:close(), also when fn raises.
---@param obj table
---@param fn function
---@return any ... what fn returned
function M.with(obj, fn, ...)
  schema.argument("with", "fn", fn, "function")
  local result = pack(pcall(fn, obj, ...))
  obj:close()
  if not result[1] then
    error(result[2], 0)
  end
  return unpack(result, 2, result.n)
end

return M
