-- helper.lua - what every spec runs under, and what specs share
--
-- As busted's helper (.busted names it) this file takes a census before and after each spec,
-- waits a few seconds for what is on its way out, and fails the spec with the list of what stayed.
-- `local H = require "spec.helper"` gives a spec the functions below.
--
-- Skips: spec/pending.txt lists `name: test -- reason`, `test` being a shell command that succeeds
-- on machines where the spec has to be skipped. H.skip_unless(name) is the only way to skip; what
-- it did goes to $WOVYR_SPEC_SKIPS, which scripts/spec.sh compares with the list.
-- SPDX-License-Identifier: MIT

local census = require "spec.census"
local system = require "system"

local H = { census = census }

--- "lua5.4" or "luajit", also the name of the interpreter to run.
H.vm = rawget(_G, "jit") and "luajit" or "lua5.4"
--- Seconds for things to go away after a spec.
H.settle = tonumber(os.getenv "WOVYR_SPEC_SETTLE") or 5

H.sleep = system.sleep
H.now = system.monotime

--- 'text' as one word for a shell.
function H.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Runs a shell command. -> exit status (128 + signal), all it printed (stdout and stderr)
function H.sh(command)
  local pipe = assert(io.popen("( " .. command .. "\n) 2>&1; status=$?; echo; echo $status", "r"))
  local text = pipe:read("*a")
  pipe:close()
  local output, status = text:match("^(.*)\n(%d+)\n$")
  return tonumber(status), output
end

local uid
--- The effective user id.
function H.uid()
  if not uid then
    local file = assert(io.open("/proc/self/status"))
    uid = tonumber(file:read("*a"):match("\nUid:%s*%d+%s+(%d+)"))
    file:close()
  end
  return uid
end

--- Waits until fn() gives something true, and returns it; nil when `seconds` (5) are over.
function H.eventually(fn, seconds)
  local deadline = H.now() + (seconds or 5)
  repeat
    local value = fn()
    if value then
      return value
    end
    H.sleep(0.01)
  until H.now() > deadline
  return nil
end

local at_end = {}
--- fn runs after the spec (last one first), before the census.
function H.at_end(fn)
  at_end[#at_end + 1] = fn
end

--- An empty directory, gone after the spec.
function H.tmpdir()
  local _, path = H.sh "mktemp -d /tmp/spec.XXXXXX"
  path = path:match("[^\n]+")
  H.at_end(function()
    H.sh("chmod -R u+rwX " .. path .. "; rm -rf " .. path)
  end)
  return path
end

function H.write(path, bytes)
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes))
  file:close()
end

function H.read(path)
  local file = io.open(path, "rb")
  local bytes = file and file:read("*a")
  if file then
    file:close()
  end
  return bytes
end

-- ---- skips

local conditions
local function condition(name)
  if not conditions then
    conditions = {}
    for line in io.lines("spec/pending.txt") do
      local key, test, reason = line:match("^([%w_-]+):%s*(.-)%s+%-%-%s+(.+)$")
      if key then
        conditions[key] = { test = test, reason = reason }
      elseif not line:find("^%s*#") and line:find("%S") then
        error("spec/pending.txt: not `name: test -- reason`: " .. line)
      end
    end
  end
  return conditions[name] or error("skip_unless: " .. name .. " is not in spec/pending.txt", 3)
end

local function record(what, name)
  local path = os.getenv "WOVYR_SPEC_SKIPS"
  if path and path ~= "" then
    local file = assert(io.open(path, "a"))
    file:write(what, " ", name, "\n")
    file:close()
  end
end

--- Skips the spec where spec/pending.txt says so for `name`. A spec that has seen for itself
--- whether it can run passes that as `can`; the list is then held against it.
function H.skip_unless(name, can)
  local listed = condition(name)
  if can == nil then
    if listed.holds == nil then
      listed.holds = H.sh("unset LD_PRELOAD; " .. listed.test) == 0
    end
    can = not listed.holds
  end
  record(can and "ran" or "skipped", name)
  if not can then
    H.pending(name .. ": " .. listed.reason)
  end
end

-- ---- the census around each spec

local function upvalue(fn, name)
  for i = 1, 60 do
    local key, value = debug.getupvalue(fn, i)
    if key == nil or key == name then
      return value
    end
  end
end

-- The runtime that the module's own functions share, if one of them was used. There is no way to
-- ask for it, on purpose; a process keeps it until it ends.
local function shared_runtime()
  local module = package.loaded["wovyr.runtime"]
  local shared = type(module) == "table" and upvalue(module.list, "shared")
  return shared and upvalue(shared, "default")
end

-- Lets go of what the finished spec only forgot to collect: garbage, and the shared runtime unless
-- it was there before the spec.
local function release(keep)
  for i = #at_end, 1, -1 do
    local fn = at_end[i]
    at_end[i] = nil
    fn()
  end
  local runtime = shared_runtime()
  if runtime and runtime ~= keep then
    runtime:close()
  end
  collectgarbage()
  collectgarbage()
end

--- What is new since `before` once `seconds` (H.settle) are over or nothing is.
function H.leaks(before, seconds)
  local deadline = H.now() + (seconds or H.settle)
  local pause = 0.005
  while true do
    local new = census.diff(before, census.take())
    if #new == 0 or H.now() > deadline then
      return new
    end
    H.sleep(pause)
    pause = math.min(pause * 2, 0.2)
    collectgarbage()
  end
end

-- A census to compare with. Where a runtime is alive already, its pools may be filling: waits
-- (at most a second) until nothing moves.
local function baseline()
  local now = census.take()
  local deadline = H.now() + 1
  while next(now.process) and H.now() < deadline do
    H.sleep(0.03)
    local last = now
    now = census.take()
    if #census.diff(last, now) + #census.diff(now, last) == 0 then
      break
    end
  end
  return now
end

local function install()
  local busted = require "busted"
  local before, before_file, before_runtime, title
  busted.subscribe({ "file", "start" }, function()
    before_file = baseline()
    return nil, true
  end)
  busted.subscribe({ "test", "start" }, function(element, parent)
    title = (parent.descriptor ~= "file" and parent.name .. " " or "") .. element.name
    H.pending = element.env and element.env.pending -- the one that ends the running spec
    return nil, true
  end)
  busted.before_each(function()
    before_runtime = shared_runtime()
    before = baseline()
  end)
  busted.after_each(function()
    release(before_runtime)
    local new = H.leaks(before)
    if #new > 0 then
      error("left behind by \"" .. title .. "\":\n  " .. table.concat(new, "\n  "), 0)
    end
  end)
  busted.subscribe({ "file", "end" }, function(file)
    release()
    local new = H.leaks(before_file)
    if #new > 0 then
      busted.publish({ "error", "file" }, file, nil,
        "left behind by " .. file.name .. ":\n  " .. table.concat(new, "\n  "))
    end
    return nil, true
  end, { priority = 1 }) -- before the output handler's
end

if ... == nil then -- run by busted as its helper, not required
  package.loaded["spec.helper"] = H
  install()
end

return H
