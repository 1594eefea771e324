--- policy/init.lua - from what was asked, in layers, to one plan. Pure: never touches C.

local E = require "wovyr.error"
local options = require "wovyr.options"
local schema = require "wovyr.schema"
local select_backend = require "wovyr.policy.select"
local units = require "wovyr.units"

local M = {}

local MIB = 1024 * 1024

-- Where every open starts. A limit of this table that a machine cannot enforce is left out
-- and shown as such in the guarantees; one that somebody wrote down is refused instead.
M.builtin = {
  template = "host",
  trust = "untrusted",
  shell = { "/bin/bash", "-c" },
  limits = { memory = "1G", cpus = 1, pids = 256, disk = "512M", nofile = 1024 },
  exec = { timeout = "2m", output = "16M" },
  egress = "none",
  idle_ttl = "5m",
  lifetime = "1h",
  on_expire = "kill",
}

-- Room that programs keep when the store, which lives in memory, is full.
local RESERVE = 64 * MIB
local MIN_MEMORY = 16 * MIB

local records = { limits = true, exec = true, env = true, metadata = true }

--- Merge checked layers, the first the weakest: records merge by key, the rest replaces.
---@param layers { name: string, spec: table }[]
---@return table spec
---@return table<string, string> origin of each value, by path
function M.merge(layers)
  local merged, origin = {}, {}
  for _, layer in ipairs(layers) do
    for name, value in pairs(layer.spec) do
      if records[name] then
        merged[name] = merged[name] or {}
        for key, item in pairs(value) do
          merged[name][key] = item
          origin[name .. "." .. key] = layer.name
        end
      else
        merged[name] = value
        origin[name] = layer.name
      end
    end
  end
  return merged, origin
end

local function has_nul(v)
  if type(v) == "string" then
    return v:find("\0", 1, true) ~= nil
  elseif type(v) == "table" then
    for key, item in pairs(v) do
      if has_nul(key) or has_nul(item) then
        return true
      end
    end
  end
  return false
end

-- Parts of a Spec that this version knows and cannot do yet: refused, never ignored.
local function refuse_unbuilt(spec)
  local function unsupported(field, what)
    return nil, E.new("unsupported", "open", what .. " is not built in this version", {
      field = field,
      value = spec[field],
    })
  end
  if spec.egress ~= "none" then
    return unsupported("egress", "network access")
  elseif spec.mounts and next(spec.mounts) then
    return unsupported("mounts", "mounting host directories")
  elseif spec.secrets and next(spec.secrets) then
    return unsupported("secrets", "handing out secrets")
  elseif spec.on_expire == "pause" then
    return unsupported("on_expire", "pausing at the end")
  end
  return true
end

-- The store lives in RAM, so it has to fit beside the programs.
local function fit_disk(limits, origin)
  local room = limits.memory - RESERVE
  if limits.memory < MIN_MEMORY then
    return nil, E.new("invalid", "open", "limits.memory is too small to run anything", {
      field = "limits.memory",
      value = limits.memory,
      hint = "at least " .. units.size_text(MIN_MEMORY),
    })
  elseif limits.disk <= room then
    return limits.disk
  elseif origin["limits.disk"] == "built-in" then
    return math.floor(math.min(limits.disk, math.max(room, limits.memory / 4)))
  end
  return nil, E.new("invalid", "open",
    ("limits.disk (%s) does not fit limits.memory (%s): files live in memory, and programs keep %s")
      :format(units.size_text(limits.disk), units.size_text(limits.memory),
        units.size_text(RESERVE)),
    {
      field = "limits.disk",
      value = limits.disk,
      hint = ("ask for memory = %q, or less disk"):format(
        units.size_text(math.ceil((limits.disk + RESERVE) / MIB) * MIB)),
    })
end

-- Limits that must hold: those somebody wrote down and did not call best effort.
local function demanded(origin, best_effort)
  local names = {}
  for _, def in ipairs(options.limits) do
    local from = origin["limits." .. def.name]
    if from and from ~= "built-in" and not best_effort[def.name] then
      names[#names + 1] = def.name
    end
  end
  return names
end

local function best_effort_set(spec)
  local set = {}
  for i, name in ipairs(spec.best_effort or {}) do
    local guarantee = select_backend.guarantee_of[name]
    if not guarantee then
      return nil, E.new("invalid", "open", ("best_effort[%d] is not a limit: %q"):format(i, name), {
        field = "best_effort",
        value = name,
        hint = "memory, cpus, pids or disk",
      })
    end
    set[name] = true
  end
  return set
end

--- The layers of one open, weakest first, each checked. Raises for a wrong option.
---@param spec table? what the caller asked
---@param config table? { defaults = Spec, profiles = { name = Spec } }
---@return table? layers
---@return wovyr.Error? err "not_found" for an unknown profile
function M.layers(spec, config)
  local layers = { { name = "built-in", spec = schema.check(options.spec, M.builtin, "open") } }
  local checked = schema.check(options.spec, spec, "open")
  config = config or {}
  if config.defaults then
    layers[2] = { name = "defaults", spec = schema.check(options.spec, config.defaults, "config") }
  end
  if checked.profile then
    local profile = config.profiles and config.profiles[checked.profile]
    if not profile then
      local names = {}
      for name in pairs(config.profiles or {}) do
        names[#names + 1] = name
      end
      local near = schema.nearest(checked.profile, names)
      return nil, E.new("not_found", "open", ("no profile %q"):format(checked.profile), {
        field = "profile",
        value = checked.profile,
        hint = near and ("did you mean %q?"):format(near)
          or "profiles come from runtime { config = ... }",
      })
    end
    layers[#layers + 1] = {
      name = "profile",
      spec = schema.check(options.spec, profile, "config"),
    }
  end
  layers[#layers + 1] = { name = "call", spec = checked }
  return layers
end

--- What will be done for a Spec on this node, before anything runs. Raises for a wrong option.
---@param spec table?
---@param config table?
---@param node table see policy/select
---@return table? plan
---@return wovyr.Error? err "invalid", "not_found", "unsupported" or "unavailable"
function M.plan(spec, config, node)
  local layers, err = M.layers(spec, config)
  if not layers then
    return nil, err
  end
  local merged, origin = M.merge(layers)
  local ok, best_effort, decision, disk
  if has_nul(merged) then
    for name, value in pairs(merged) do
      if has_nul(value) then
        return nil, E.new("invalid", "open", name .. " contains a zero byte", { field = name })
      end
    end
  end
  disk, err = fit_disk(merged.limits, origin)
  if not disk then
    return nil, err
  end
  if not merged.template:match("^%w[%w%._-]*$") then
    return nil, E.new("invalid", "open", "a template is a name: letters, digits, '.', '_', '-'", {
      field = "template",
      value = merged.template,
    })
  end
  ok, err = refuse_unbuilt(merged)
  if not ok then
    return nil, err
  end
  best_effort, err = best_effort_set(merged)
  if not best_effort then
    return nil, err
  end
  decision, err = select_backend.select(
    { backend = merged.backend, limits = demanded(origin, best_effort) },
    merged.floor, merged.trust, node)
  if not decision then
    return nil, err
  end

  local limits, dropped = {}, {}
  for name, value in pairs(merged.limits) do
    local guarantee = select_backend.guarantee_of[name]
    local g = guarantee and decision.guarantees[guarantee]
    if guarantee and (not g or g.state == "absent") then
      dropped[#dropped + 1] = name
    else
      limits[name] = value
    end
  end
  table.sort(dropped)
  if limits.disk then
    limits.disk = disk
  end
  return {
    template = merged.template,
    trust = merged.trust,
    backend = decision.backend,
    level = decision.level,
    reasons = decision.reasons,
    guarantees = decision.guarantees,
    limits = limits,
    dropped = dropped,
    best_effort = merged.best_effort or {},
    exec = merged.exec,
    idle_ttl = merged.idle_ttl or nil,
    lifetime = merged.lifetime or nil,
    shell = merged.shell,
    user = merged.user,
    cwd = merged.cwd,
    env = merged.env or {},
    metadata = merged.metadata or {},
    spec = merged,
    origin = origin,
  }
end

local function canonical(v, out)
  if type(v) == "table" then
    local keys = {}
    for key in pairs(v) do
      keys[#keys + 1] = key
    end
    table.sort(keys, function(a, b)
      return tostring(a) < tostring(b)
    end)
    out[#out + 1] = "{"
    for _, key in ipairs(keys) do
      out[#out + 1] = ("[%s]="):format(type(key) == "number" and units.integer(key)
        or ("%q"):format(key))
      canonical(v[key], out)
      out[#out + 1] = ","
    end
    out[#out + 1] = "}"
  elseif type(v) == "number" then
    out[#out + 1] = v % 1 == 0 and units.integer(v) or ("%.17g"):format(v)
  elseif type(v) == "string" then
    out[#out + 1] = ("%q"):format(v)
  else
    out[#out + 1] = tostring(v)
  end
end

--- A merged Spec as text: equal recipes give equal texts, in either VM.
---@param spec table
---@return string
function M.canonical(spec)
  local out = {}
  canonical(spec, out)
  return table.concat(out)
end

--- The plan for people: what was chosen, why, and what holds.
---@param plan table
---@return string
function M.explain(plan)
  local lines = {
    ("backend   %s (level %d), template %q, trust %q"):format(
      plan.backend, plan.level, plan.template, plan.trust),
  }
  for _, reason in ipairs(plan.reasons) do
    lines[#lines + 1] = "  because " .. reason
  end
  lines[#lines + 1] = "limits"
  for _, def in ipairs(options.limits) do
    local value = plan.limits[def.name]
    local text = "not enforced here"
    if value and (def.type == "size") then
      text = units.size_text(value)
    elseif value then
      text = ("%.6g"):format(value)
    end
    lines[#lines + 1] = ("  %-8s %s (%s)"):format(def.name, text,
      plan.origin["limits." .. def.name] or "built-in")
  end
  local exec, output = plan.exec, plan.exec.output
  if type(output) == "table" then
    output = output.limit
  end
  lines[#lines + 1] = ("each exec  timeout %s, output %s"):format(
    exec.timeout and units.seconds_text(exec.timeout) or "none",
    output and units.size_text(output) or "unlimited")
  lines[#lines + 1] = ("ends       idle %s, lifetime %s"):format(
    plan.idle_ttl and units.seconds_text(plan.idle_ttl) or "never",
    plan.lifetime and units.seconds_text(plan.lifetime) or "unlimited")
  lines[#lines + 1] = "guarantees"
  for _, name in ipairs(M.guarantees) do
    local g = plan.guarantees[name] or { state = "absent", evidence = "" }
    lines[#lines + 1] = ("  %-15s %-9s %s"):format(name, g.state, g.evidence or "")
  end
  return (table.concat(lines, "\n"):gsub("%s+\n", "\n"))
end

--- The closed list that every sandbox reports.
M.guarantees = {
  "host_files", "network", "uid_range", "ns_ownership", "syscall_filter", "memory", "pids", "cpu",
  "disk", "tree_kill", "oom_evidence", "pause", "crash_cleanup",
}

return M
