--- policy/select.lua - which backend serves a request. Pure: data in, decision out.
--
-- Required level = the highest of what was preferred, what the floor says and what the trust
-- class needs. The decision is the weakest backend of at least that level that this node has
-- and that can enforce every requested limit. A stronger one may be chosen, a weaker one never.

local E = require "wovyr.error"

local M = {}

-- Weakest first. `built` is false until the backend exists in this version.
M.backends = {
  { name = "native", level = 1, built = false },
  { name = "wasi", level = 2, built = false },
  { name = "container", level = 3, built = true },
  { name = "gvisor", level = 4, built = false },
  { name = "microvm", level = 5, built = false },
  { name = "kubernetes", level = 6, built = false },
}

M.trust = {
  first_party = { level = 1, needs = {} },
  verified = {
    level = 3,
    needs = { "host_files", "network", "ns_ownership", "syscall_filter", "crash_cleanup" },
  },
  untrusted = {
    level = 4,
    needs = { "host_files", "network", "ns_ownership", "syscall_filter", "crash_cleanup" },
  },
}

-- The guarantee that each limit rests on; nofile is a plain rlimit and always holds.
M.guarantee_of = { memory = "memory", cpus = "cpu", pids = "pids", disk = "disk" }

local by_name = {}
for _, backend in ipairs(M.backends) do
  by_name[backend.name] = backend
end

--- The level of a backend's name, or nil.
---@param name string?
---@return integer?
function M.level(name)
  return name and by_name[name] and by_name[name].level
end

-- What keeps this candidate from serving: a list of texts, and the limits among it.
local function missing_of(backend, request, needs, node)
  local missing, limits = {}, {}
  if not backend.built then
    return { "not built in this version" }, limits
  end
  local there = node.backends and node.backends[backend.name]
  if not there or not there.available then
    return { there and there.missing or "not found on this machine" }, limits
  end
  local guarantees = there.guarantees or {}
  for _, name in ipairs(needs) do
    local g = guarantees[name]
    if not g or g.state ~= "enforced" then
      missing[#missing + 1] = ("%s is %s%s"):format(name, g and g.state or "absent",
        g and g.evidence and g.evidence ~= "" and " (" .. g.evidence .. ")" or "")
    end
  end
  for _, limit in ipairs(request.limits or {}) do
    local name = M.guarantee_of[limit]
    local g = name and guarantees[name]
    if name and (not g or g.state ~= "enforced") then
      local text = ("limits.%s cannot be enforced: %s is %s%s"):format(limit, name,
        g and g.state or "absent", g and g.evidence and g.evidence ~= ""
        and " (" .. g.evidence .. ")" or "")
      missing[#missing + 1] = text
      limits[#limits + 1] = { limit = limit, text = text }
    end
  end
  return missing, limits
end

local function unavailable(required, reasons, candidates, request, node)
  local lines = {}
  for _, c in ipairs(candidates) do
    lines[#lines + 1] = ("%s: %s"):format(c.backend, table.concat(c.missing, "; "))
  end
  -- Say the choice that would work, word for word, when trust alone stands in the way.
  local hint
  if request.trust_name == "untrusted" then
    local weaker = M.select({ backend = request.backend }, request.floor, "verified", node)
    if weaker then
      hint = ("this machine has %q (level %d); if you know who wrote the code, "
        .. "open with trust = \"verified\""):format(weaker.backend, weaker.level)
    end
  end
  return nil, E.new("unavailable", "select",
    ("no backend of level %d or more can serve this: %s"):format(
      required, table.concat(lines, "; ")),
    { hint = hint, candidates = candidates, reasons = reasons })
end

--- Choose.
---@param request { backend: string?, limits: string[]? } limits: names that must be enforced
---@param floor string? weakest backend allowed
---@param trust string "first_party", "verified" or "untrusted"
---@param node table `node.backends[name] = { available, missing, guarantees }`
---@return table? decision { backend, level, required, reasons, guarantees }
---@return wovyr.Error? err "unavailable" with candidates, "unsupported" with the limit's field
function M.select(request, floor, trust, node)
  local class = M.trust[trust]
  local reasons = { ("trust %q needs level %d"):format(trust, class.level) }
  local required = class.level
  for _, rule in ipairs { { "backend", request.backend }, { "floor", floor } } do
    local level = M.level(rule[2])
    if level then
      reasons[#reasons + 1] = ("%s %q is level %d"):format(rule[1], rule[2], level)
      required = math.max(required, level)
    end
  end

  local candidates, refused = {}, nil
  for _, backend in ipairs(M.backends) do
    if backend.level >= required then
      local missing, limits = missing_of(backend, request, class.needs, node)
      if #missing == 0 then
        reasons[#reasons + 1] = ("%q (level %d) is the weakest here that serves level %d")
          :format(backend.name, backend.level, required)
        return {
          backend = backend.name,
          level = backend.level,
          required = required,
          reasons = reasons,
          guarantees = node.backends[backend.name].guarantees,
        }
      end
      if #limits > 0 and #limits == #missing and not refused then
        refused = { backend = backend.name, limit = limits[1].limit, text = limits[1].text }
      end
      candidates[#candidates + 1] = {
        backend = backend.name,
        level = backend.level,
        missing = missing,
      }
    end
  end
  if refused then
    return nil, E.new("unsupported", "select", refused.text, {
      field = "limits." .. refused.limit,
      limit = refused.limit,
      backend = refused.backend,
      hint = ("leave it out, or name it: best_effort = { %q }"):format(refused.limit),
      candidates = candidates,
    })
  end
  return unavailable(required, reasons, candidates, {
    backend = request.backend,
    floor = floor,
    trust_name = trust,
  }, node)
end

return M
