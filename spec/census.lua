-- census.lua - full lists of what a sandbox runtime could leave behind on this machine
--
-- census.take() lists processes, namespaces, mounts, cgroups, own descriptors, files and uid
-- leases; census.diff(before, after) tells what is there now and was not. Items are compared by
-- identity first; a new item is forgiven when one with the same label went away, so that a pool
-- that lives through a spec may replace what it handed out, but not grow.
-- SPDX-License-Identifier: MIT

local lfs = require "lfs"

local M = {}

local NAMESPACES = { "cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts" }

local function slurp(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

local function link(path)
  return lfs.symlinkattributes(path, "target")
end

-- The names in a directory; empty when it cannot be listed.
local function names(path)
  local list = {}
  local ok, iter, dir = pcall(lfs.dir, path)
  if ok then
    for name in iter, dir do
      if name ~= "." and name ~= ".." then
        list[#list + 1] = name
      end
    end
    dir:close()
  end
  return list
end

local function mode(path)
  return lfs.symlinkattributes(path, "mode")
end

function M.self_pid()
  return tonumber(slurp("/proc/self/stat"):match("^%d+"))
end

-- ---- processes and the namespaces that they hold

local function describe(pid)
  local status = slurp("/proc/" .. pid .. "/status")
  if not status then
    return nil
  end
  local argv0 = (slurp("/proc/" .. pid .. "/cmdline") or ""):match("^[^%z]*") or ""
  return {
    pid = pid,
    name = status:match("^Name:%s*([^\n]*)"),
    parent = tonumber(status:match("\nPPid:%s*(%d+)")),
    state = status:match("\nState:%s*(%a)"),
    nested = status:match("\nNSpid:%s*%d+%s+%d") ~= nil,
    argv0 = argv0:match("[^/]*$"),
  }
end

-- When a process was started, in ticks since boot.
local function started(pid)
  local stat = slurp("/proc/" .. pid .. "/stat") or ""
  local fields = stat:match(".*%)(.*)") or ""
  local n = 0
  for field in fields:gmatch("%S+") do
    n = n + 1
    if n == 20 then -- the 22nd of the line; two are before the bracket
      return tonumber(field)
    end
  end
end

-- The owner (its run directory's name) and the living host of a supervisor, as its descriptors
-- tell them; nothing where they may not be read.
local function serves(pid)
  local owner, hosts = nil, {}
  for _, fd in ipairs(names("/proc/" .. pid .. "/fd")) do
    local target = link("/proc/" .. pid .. "/fd/" .. fd) or ""
    owner = owner or target:match("/(%x+)/lock$")
    if target:find("pidfd", 1, true) then
      local info = slurp("/proc/" .. pid .. "/fdinfo/" .. fd) or ""
      hosts[#hosts + 1] = tonumber(info:match("\nPid:%s*(%d+)"))
    end
  end
  return owner, hosts
end

-- Who adopts this process's orphans: init, or a subreaper below it. Seen by making one.
local adopter
local function reaper()
  if not adopter then
    local pipe = io.popen("sleep 0.3 >/dev/null 2>&1 & echo $!")
    local orphan = pipe:read("*n")
    pipe:close()
    adopter = describe(orphan).parent
  end
  return adopter
end

-- Ours: below this process; or called wovyr-*, or in a pid or user namespace that is not the
-- test's. A supervisor is nobody's child, so ancestry alone would not find it. Not ours, so that
-- somebody else may work on the same machine: what is older than this process or below something
-- older, what has a parent but no orphan's, and what serves a host like that.
-- -> list, owners that are not ours
local function processes(self)
  local all = {}
  for _, name in ipairs(names("/proc")) do
    local pid = tonumber(name)
    local process = pid and describe(pid)
    if process and process.parent ~= 2 then
      all[pid] = process
    end
  end
  local born, above = started(self), { [0] = true, [1] = true }
  local pid = self
  while all[pid] do
    pid = all[pid].parent
    above[pid] = true
  end

  -- The process, or the first one above it, for which `test` holds.
  local function climb(process, test)
    while process and not above[process.pid] do
      if test(process) then
        return process
      end
      process = all[process.parent]
    end
  end
  local function is_self(process)
    return process.pid == self
  end
  local function is_older(process)
    return (started(process.pid) or born) < born
  end
  local function is_top(process)
    return above[process.parent]
  end

  local function is_elsewhere(process)
    return not climb(process, is_self)
      and (climb(process, is_older) ~= nil or climb(process, is_top).parent ~= reaper())
  end

  local others = {}
  local function is_foreign(process)
    local top = climb(process, is_top)
    if top and top.foreign == nil then
      top.foreign = is_elsewhere(process)
      local owner, hosts = serves(top.pid)
      for _, host in ipairs(hosts) do
        host = all[host]
        if host and climb(host, is_top) ~= top then
          top.foreign = top.foreign or is_elsewhere(host)
        end
      end
      if owner and top.foreign then
        others[owner] = true
      end
    end
    return top and top.foreign
  end

  local user = link("/proc/self/ns/user")
  local ours = {}
  for _, process in pairs(all) do
    if process.pid ~= self and not above[process.pid] then
      local namespace = link("/proc/" .. process.pid .. "/ns/user")
      local marked = process.nested or (namespace and namespace ~= user)
        or process.name:find("wovyr-", 1, true) or process.argv0:find("^wovyr%-")
      -- a zombie under init is init's to reap
      local init = process.state == "Z" and above[process.parent]
      if climb(process, is_self) or (marked and not init and not is_foreign(process)) then
        ours[#ours + 1] = process
      end
    end
  end
  return ours, others
end

local function put(list, id, label)
  list[id] = label or id
end

local function take_processes(census, self)
  local own = {}
  for _, kind in ipairs(NAMESPACES) do
    own[link("/proc/self/ns/" .. kind) or ""] = true
    own[kind] = true
  end
  local ours, others = processes(self)
  for _, process in ipairs(ours) do
    local dir = "/proc/" .. process.pid
    local label = process.argv0 ~= "" and process.argv0 or process.name
    if process.state == "Z" then
      label = label .. " (zombie)"
    end
    put(census.process, process.pid .. " " .. label .. ", child of " .. process.parent, label)
    local held = {}
    for _, kind in ipairs(NAMESPACES) do
      held[#held + 1] = link(dir .. "/ns/" .. kind)
    end
    for _, fd in ipairs(names(dir .. "/fd")) do
      local target = link(dir .. "/fd/" .. fd)
      if own[target and target:match("^%a+")] then
        held[#held + 1] = target
      end
    end
    for _, namespace in ipairs(held) do
      if not own[namespace] then
        put(census.namespace, namespace, namespace:match("^%a+"))
      end
    end
  end
  return others
end

-- ---- this process

local function take_descriptors(census, self)
  for _, fd in ipairs(names("/proc/self/fd")) do
    local target = link("/proc/self/fd/" .. fd)
    if target and target ~= "/proc/" .. self .. "/fd" then -- not the one that lists
      put(census.descriptor, fd .. " -> " .. target, (target:gsub("%[?%d+%]?$", "")))
    end
  end
end

-- ---- the machine

local function take_mounts(census)
  local cgroups = {}
  for line in slurp("/proc/self/mountinfo"):gmatch("[^\n]+") do
    local fields, point, kind, source =
      line:match("^%d+ %d+ (%S+ %S+) (%S+) .- %- (%S+) (%S+)")
    put(census.mount, line:match("^%d+") .. " " .. point .. " " .. kind .. " " .. source,
      fields .. point .. kind)
    if kind == "cgroup" or kind == "cgroup2" then
      cgroups[#cgroups + 1] = point
    end
  end
  return cgroups
end

local function cgroup_tree(list, path)
  for _, name in ipairs(names(path)) do
    local below = path .. "/" .. name
    if mode(below) == "directory" then
      put(list, below, (below:gsub("%d+$", "N")))
      cgroup_tree(list, below)
    end
  end
end

-- The directory `wovyr` itself may stay; it is looked for at the top of each hierarchy and in
-- every group above this process (a delegated one, say).
local function take_cgroups(census, mounts)
  local paths = { [""] = true }
  for path in (slurp("/proc/self/cgroup") or ""):gmatch(":(/[^\n]*)") do
    while path and path ~= "" do
      paths[path:gsub("/$", "")] = true
      path = path:match("^(.*)/[^/]*$")
    end
  end
  for _, mount in ipairs(mounts) do
    for path in pairs(paths) do
      cgroup_tree(census.cgroup, mount .. path .. "/wovyr")
    end
  end
end

local function file_tree(list, path, depth)
  put(list, path, (path:gsub("%x%x%x%x%x%x%x%x+", "X"):gsub("%d+", "N")))
  if depth > 0 and mode(path) == "directory" then
    for _, name in ipairs(names(path)) do
      file_tree(list, path .. "/" .. name, depth - 1)
    end
  end
end

-- A run directory may stay, with its lock and its empty directory of leases.
local function run_directory(census, path)
  for _, name in ipairs(names(path)) do
    if name == "uid" then
      for _, lease in ipairs(names(path .. "/uid")) do
        put(census.lease, path .. "/uid/" .. lease, path)
      end
    elseif name ~= "lock" then
      file_tree(census.file, path .. "/" .. name, 8)
    end
  end
end

local function take_files(census)
  run_directory(census, "/run/wovyr")
  for _, user in ipairs(names("/run/user")) do
    run_directory(census, "/run/user/" .. user .. "/wovyr")
  end
  for _, dir in ipairs { "/tmp", "/dev/shm" } do
    for _, name in ipairs(names(dir)) do
      if name:find("^wovyr%-%d+$") then
        run_directory(census, dir .. "/" .. name)
      elseif name:find("^wovyr") then
        file_tree(census.file, dir .. "/" .. name, 8)
      end
    end
  end
  for _, name in ipairs(names("/var/lib/wovyr")) do
    if name == "t" then
      for _, template in ipairs(names("/var/lib/wovyr/t")) do
        file_tree(census.file, "/var/lib/wovyr/t/" .. template, 0)
      end
    elseif name ~= "lock" then
      file_tree(census.file, "/var/lib/wovyr/" .. name, 0)
    end
  end
end

M.kinds = { "process", "namespace", "mount", "cgroup", "descriptor", "file", "lease" }

--- Lists everything: { kind = { id = label } }.
function M.take()
  local census = {}
  for _, kind in ipairs(M.kinds) do
    census[kind] = {}
  end
  local self = M.self_pid()
  take_descriptors(census, self)
  local others = take_processes(census, self)
  take_cgroups(census, take_mounts(census))
  take_files(census)
  for _, kind in ipairs { "cgroup", "file", "lease" } do
    for id in pairs(census[kind]) do
      local owner = id:match("/wovyr[^/]*/(%x%x%x%x%x%x%x%x+)")
        or (kind == "lease" and (slurp(id) or ""):match("^%x+"))
      if others[owner or ""] then
        census[kind][id] = nil
      end
    end
  end
  return census
end

--- What is new in `after`: a list of "kind id", sorted.
function M.diff(before, after)
  local new = {}
  for _, kind in ipairs(M.kinds) do
    local gone = {}
    for id, label in pairs(before[kind]) do
      if not after[kind][id] then
        gone[label] = (gone[label] or 0) + 1
      end
    end
    for id, label in pairs(after[kind]) do
      if not before[kind][id] then
        if (gone[label] or 0) > 0 then
          gone[label] = gone[label] - 1
        else
          new[#new + 1] = kind .. " " .. id
        end
      end
    end
  end
  table.sort(new)
  return new
end

return M
