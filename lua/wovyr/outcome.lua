--- outcome.lua - how a process ended, and the evidence for it.
--
-- SIGKILL carries no sender. `oom` needs a leader that died of a SIGKILL which nobody of ours
-- sent, and a rise of the session's oom_kill counter by at least the number of such deaths in
-- the same window. A smaller rise proves nothing: the answer is then `unknown_outcome`.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local signals = require "wovyr.signals"
local units = require "wovyr.units"

local M = {}

local CAUSE = { "exited", "signaled", "timeout", "output", "killed" }
local REASON = {
  [0] = nil, "wall", "cpu_time", "owner", "idle_ttl", "lifetime", "policy", "shutdown", "guest",
  "memory", "fork",
}
M.reasons = REASON

-- Bits of EXIT.limits, in the order in which they are reported.
local HITS = { { 1, "output" }, { 2, "timeout" }, { 4, "cpu_time" }, { 8, "disk" } }

local COUNTERS_PATIENCE = 2 -- seconds
local LONG_RUN = 50000      -- microseconds; from here on the counters are read in any case
local KILL = 9

---@class wovyr.Outcome
---@field ok boolean exited with 0
---@field cause "exited"|"signaled"|"timeout"|"oom"|"output"|"killed" how the leader ended
---@field reason? string "wall", "cpu_time", "owner", "guest", ...
---@field exit_code? integer when it exited
---@field signal? string when a signal ended it: "KILL"
---@field stdout string? bytes
---@field stderr string? bytes
---@field missing { stdout: integer, stderr: integer } bytes that were cut
---@field drained boolean false: something still held the output open after the grace
---@field duration number seconds
---@field usage { cpu_time: number, memory_peak: integer, output: integer }
---@field resource_exceeded string[] limits that were hit while it ran, whoever hit them
---@field limit? number the limit that ended it: seconds or bytes
---@field pid integer
local Outcome = {}
Outcome.__index = Outcome
Outcome.__name = "wovyr.Outcome"
M.Outcome = Outcome

--- One line: "exit 2", "signal SEGV", "timeout: wall 60 s", "oom at 512M".
---@return string
function Outcome:describe()
  local at = self.limit
  if self.cause == "exited" then
    return ("exit %d"):format(self.exit_code)
  elseif self.cause == "signaled" then
    return "signal " .. self.signal
  elseif self.cause == "timeout" then
    return ("timeout: %s%s"):format(self.reason or "wall",
      at and " " .. units.seconds_text(at) or "")
  elseif self.cause == "oom" then
    return "oom" .. (at and " at " .. units.size_text(at) or "")
  elseif self.cause == "output" then
    return "output" .. (at and " over " .. units.size_text(at) or "")
  end
  return "killed" .. (self.reason and " by " .. self.reason or "")
end

Outcome.__tostring = Outcome.describe

--- The outcome itself when ok; raises an Error "failed", with it, when not.
---@return wovyr.Outcome
function Outcome:check()
  if self.ok then
    return self
  end
  local text = self.stderr and self.stderr:gsub("%s+$", "") or ""
  if #text > 400 then
    text = "..." .. text:sub(-400)
  end
  error(E.new("failed", "exec", self:describe() .. (text ~= "" and ": " .. text or ""), {
    outcome = self,
    hint = self.cause == "oom"
      and "the largest process was ended, which need not be the one that grew" or nil,
  }), 0)
end

-- Ask for the session's counters without waiting; `receive` gets them, or nil.
local function ask_counters(state, receive)
  return state.control:call("usage", "USAGE", { id = state.id }, {
    try = true,
    receive = function(name, fields)
      receive(name == "USED" and fields or nil)
    end,
  })
end

--- Begin to watch the session's counters. What they were before is mostly known, because
--- they are read again, by the way, when nothing runs any more; else they are asked for.
---@param state table the session's
---@return table watch
function M.watch(state)
  local watch = {
    state = state,
    low = state.used,
    low_is_fresh = state.used_at == state.starts,
    strays = state.conn.strays,
    began = clock.now(),
  }
  state.starts = state.starts + 1
  state.running = state.running + 1
  if state.counts and not watch.low_is_fresh then
    ask_counters(state, function(fields)
      if fields and not watch.ended then
        watch.high, watch.high_at = fields, clock.now()
        state.used = fields
      end
    end)
  end
  return watch
end

-- Off anybody's path: the next exec then starts with counters that are fresh.
local function refresh_counters(state)
  local starts = state.starts
  if state.running > 0 or state.refreshing or state.used_at == starts then
    return
  end
  state.refreshing = ask_counters(state, function(fields)
    state.refreshing = nil
    if fields then
      state.used, state.used_at = fields, starts
    end
  end)
end

local function read_counters(state)
  local starts = state.starts
  local answer, err = state.control:ask("usage", "USAGE", { id = state.id }, {
    deadline = clock.deadline(COUNTERS_PATIENCE),
  })
  if not answer then
    return nil, err
  elseif err ~= "USED" then
    return nil, E.new("protocol", "usage", "unexpected answer " .. tostring(err))
  end
  state.used, state.used_at = answer, starts
  return answer
end

-- The reading to compare with, and whether it was surely taken before the end. The one asked
-- for at the start counts as such when its answer came before the process can have died; else
-- the last one before it does, when nothing was started since.
local function before_of(watch, exit)
  if watch.high and watch.high_at - watch.began < exit.wall_us / 1e6 then
    return watch.high, true
  elseif watch.low_is_fresh then
    return watch.low, true
  end
  return watch.low, false
end

-- oom, signaled or nothing known, for a leader that a SIGKILL of unknown origin ended.
local function judge_kill(watch, exit, after)
  local before, certain = before_of(watch, exit)
  local deaths = math.max(watch.state.conn.strays - watch.strays, 1)
  local rise = after.oom_kills - before.oom_kills
  local verdict
  if rise == 0 then
    verdict = "signaled"
  elseif rise >= deaths and certain then
    verdict = "oom"
  end
  return verdict, rise, deaths
end

local function exceeded(watch, exit, after)
  local list = {}
  local before = before_of(watch, exit)
  if after then
    if after.oom_kills > before.oom_kills then
      list[#list + 1] = "memory"
    end
    if after.pids_hits > before.pids_hits then
      list[#list + 1] = "pids"
    end
    local throttled = after.throttled_us - before.throttled_us
    if throttled > 0 and throttled >= exit.wall_us / 10 then
      list[#list + 1] = "cpu"
    end
  end
  for _, hit in ipairs(HITS) do
    if math.floor((exit.limits or 0) / hit[1]) % 2 == 1 then
      list[#list + 1] = hit[2]
    end
  end
  return list
end

local function limit_of(cause, reason, o, state)
  if cause == "timeout" then
    return reason == "cpu_time" and o.cpu_time or o.timeout or nil
  elseif cause == "output" then
    return o.output or nil
  elseif cause == "oom" then
    return state.plan.limits.memory
  end
end

--- Make the Outcome of an EXIT message. May wait for the session's counters.
---@param watch table of M.watch
---@param exit table the message's fields
---@param o table { timeout, cpu_time, output, pid, stdout, stderr }
---@return wovyr.Outcome? outcome
---@return wovyr.Error? err "unknown_outcome" with partial
function M.new(watch, exit, o)
  local state = watch.state
  if not watch.ended then
    state.running = state.running - 1
  end
  watch.ended = true
  local status = exit.status or 0
  local signal = status % 128
  local exit_code = signal == 0 and math.floor(status / 256) % 256 or nil
  local cause, reason = CAUSE[exit.cause] or "killed", REASON[exit.reason]
  local ok = cause == "exited" and exit_code == 0
  local out = setmetatable({
    ok = ok,
    cause = cause,
    reason = reason,
    exit_code = exit_code,
    signal = signal ~= 0 and signals.name(signal) or nil,
    stdout = o.stdout,
    stderr = o.stderr,
    missing = {
      stdout = math.max((exit.out_bytes or 0) - #(o.stdout or ""), 0),
      stderr = math.max((exit.err_bytes or 0) - #(o.stderr or ""), 0),
    },
    drained = exit.drained ~= 0,
    duration = (exit.wall_us or 0) / 1e6,
    usage = {
      cpu_time = (exit.cpu_us or 0) / 1e6,
      memory_peak = exit.memory_peak,
      output = (exit.out_bytes or 0) + (exit.err_bytes or 0),
    },
    pid = o.pid,
  }, Outcome)

  local stray = cause == "signaled" and signal == KILL and (exit.strays or 0) > 0
  local after, err
  if state.counts and not state.ended
    and (not ok or (exit.strays or 0) > 0 or (exit.wall_us or 0) >= LONG_RUN) then
    after, err = read_counters(state)
  elseif state.counts and not state.ended then
    refresh_counters(state)
  end
  out.resource_exceeded = exceeded(watch, exit, after)
  if stray and state.counts then
    local verdict, rise, deaths
    if after then
      verdict, rise, deaths = judge_kill(watch, exit, after)
    end
    if not verdict then
      out.cause = nil
      return nil, E.new("unknown_outcome", "exec", after
        and ("a SIGKILL ended it, and whose it was cannot be told: %d such deaths, %d by memory")
          :format(deaths, rise)
        or "a SIGKILL ended it, and the session's counters did not come", {
        partial = out,
        cause = err,
        strays = deaths,
        oom_kills = rise,
      })
    end
    out.cause = verdict
  end
  out.limit = limit_of(out.cause, reason, o, state)
  return out
end

return M
