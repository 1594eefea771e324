--- io/poll.lua - waiting in a plain script.
--
-- Theory of operation. One hub holds the sockets of every runtime of this Lua state. A
-- coroutine that `spawn` made yields to the run queue when it waits. Any other caller (the
-- main program, a coroutine of somebody else) turns the wheel itself until its signal is
-- fired: run what is ready, then sleep in the hub until bytes come or the next deadline.

local core = require "wovyr.core"

local M = {}

local hub            -- made by the first wait or open
local channels = {}  -- what is read when bytes came
local ready = {}     -- coroutines to be resumed
local ours = setmetatable({}, { __mode = "k" }) -- coroutines that belong to the run queue
local timers = {}    -- waiter -> true, for those of ours with a deadline

local function resume_ready()
  local batch = ready
  ready = {}
  for _, co in ipairs(batch) do
    local ok, err = coroutine.resume(co)
    if not ok then
      io.stderr:write("wovyr: error in a spawned function: ", tostring(err), "\n")
    elseif coroutine.status(co) == "suspended" and not ours[co].waiting then
      ready[#ready + 1] = co -- a bare yield gives the others a turn
    end
  end
end

local function wake(waiter, fired)
  if waiter.woken then
    return
  end
  waiter.woken, waiter.fired = true, fired
  timers[waiter] = nil
  if waiter.co then
    ours[waiter.co].waiting = false
    ready[#ready + 1] = waiter.co
  end
end

local function expire(now)
  for waiter in pairs(timers) do
    if waiter.deadline <= now then
      wake(waiter, false) -- takes it out, which is allowed while walking
    end
  end
end

local function move_bytes(seconds)
  hub = hub or assert(core.hub())
  local ready_links
  if seconds == 0 then
    ready_links = hub:step()
  else
    ready_links = hub:wait(seconds)
  end
  if not ready_links then
    hub = nil -- a forked copy: the hub is our parent's, and so are its links
  end
  local more = false
  for i = #channels, 1, -1 do
    local channel = channels[i]
    if channel and channel:dispatch() then
      more = true
    end
  end
  return more
end

-- Turn the wheel until waiter is woken or its deadline has passed.
local function drive(waiter)
  local more = false
  while true do
    resume_ready()
    if waiter.woken then
      return
    end
    local now = core.now()
    if waiter.deadline and waiter.deadline <= now then
      return
    end
    local nearest = waiter.deadline
    for other in pairs(timers) do
      if not nearest or other.deadline < nearest then
        nearest = other.deadline
      end
    end
    local seconds = nearest and math.max(nearest - now, 0) or nil
    if more or #ready > 0 then
      seconds = 0
    end
    more = move_bytes(seconds)
    expire(core.now())
  end
end

---@class wovyr.Signal
local Signal = {}
Signal.__index = Signal
Signal.__name = "wovyr.Signal"

--- Wake everybody who waits now. Never runs them, never yields.
function Signal:fire()
  local waiters = self.waiters
  if #waiters > 0 then
    self.waiters = {}
    for _, waiter in ipairs(waiters) do
      wake(waiter, true)
    end
  end
end

--- Wait until the signal is fired or the deadline passes; a deadline in the past moves bytes
--- that are already there and never yields.
---@param deadline number? of clock.now(); nil waits for ever
---@return boolean fired
function Signal:wait(deadline)
  local co, is_main = coroutine.running()
  local waiter = { deadline = deadline, woken = false, fired = false }
  self.waiters[#self.waiters + 1] = waiter
  if deadline and deadline <= core.now() then
    move_bytes(0)
  elseif co and not is_main and ours[co] then
    waiter.co = co
    ours[co].waiting = true
    if deadline then
      timers[waiter] = true
    end
    repeat
      coroutine.yield()
    until waiter.woken
  else
    drive(waiter)
  end
  if not waiter.fired then
    for i, other in ipairs(self.waiters) do
      if other == waiter then
        table.remove(self.waiters, i)
        break
      end
    end
  end
  return waiter.fired
end

--- A thing to wait for.
---@return wovyr.Signal
function M.signal()
  return setmetatable({ waiters = {} }, Signal)
end

--- Run fn in a coroutine of the run queue, from the next wait on. fn must not raise.
---@param fn fun()
function M.spawn(fn)
  local co = coroutine.create(fn)
  ours[co] = { waiting = false }
  ready[#ready + 1] = co
end

--- Let bytes move for a channel: { link, dispatch = fn }. dispatch is called after bytes may
--- have come, and answers true when it has more to do at once.
---@param path string? of a service's socket; nil when the link has its own
---@param channel table
---@return table? handle handle:close() stops it
---@return wovyr.Error? err
function M.open(path, channel)
  if path then
    return nil, { code = "unsupported", op = "open", message = "no service mode yet" }
  end
  hub = hub or assert(core.hub())
  local mine = hub
  local ok, err = mine:add(channel.link)
  if not ok then
    return nil, err
  end
  channels[#channels + 1] = channel
  return {
    close = function()
      for i, other in ipairs(channels) do
        if other == channel then
          table.remove(channels, i)
          mine:remove(channel.link)
          if #channels == 0 and hub == mine then
            hub = nil -- nothing of ours stays open while nobody is connected
            mine:close()
          end
          return
        end
      end
    end,
    pollfd = function()
      return mine:pollfd()
    end,
  }
end

return M
