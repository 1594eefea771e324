--- sandbox.lua - a checked recipe with its decision. Cheap, reusable, runs nothing.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local options = require "wovyr.options"
local policy = require "wovyr.policy"
local schema = require "wovyr.schema"
local session = require "wovyr.session"

local M = {}

---@class wovyr.Sandbox
---@field level integer
---@field backend string
---@field template string
---@field reasons string[]
---@field limits table<string, number> bytes and counts that will be enforced
---@field guarantees table<string, { state: string, evidence: string }>
local Sandbox = {}
Sandbox.__index = Sandbox
Sandbox.__name = "wovyr.Sandbox"
M.Sandbox = Sandbox

---@param runtime wovyr.Runtime
---@param plan table
---@return wovyr.Sandbox
function M.new(runtime, plan)
  return setmetatable({
    runtime = runtime,
    plan = plan,
    level = plan.level,
    backend = plan.backend,
    template = plan.template,
    reasons = plan.reasons,
    limits = plan.limits,
    guarantees = plan.guarantees,
  }, Sandbox)
end

--- The decision for people: what was chosen, why, and what holds.
---@return string
function Sandbox:explain()
  return policy.explain(self.plan)
end

Sandbox.__tostring = Sandbox.explain

--- Open a session of this recipe.
---@param o? { timeout: number|string, key: string, detached: boolean }
---@return wovyr.Session? session
---@return wovyr.Error? err "not_found" (template), "capacity", "conflict" (key), "timeout", ...
function Sandbox:open(o)
  o = schema.check(options.open, o, "open")
  if o.detached then
    return nil, E.new("unsupported", "open", "detached sessions need a service", {
      field = "detached",
    })
  end
  return self.runtime:open_plan(self.plan, o.key, clock.deadline(o.timeout), session.open)
end

-- What belongs to a session, not to its recipe.
for _, name in ipairs { "exec", "start", "attach", "processes", "kill", "close", "usage" } do
  Sandbox[name] = function()
    E.misuse(name, "a Sandbox is a recipe: call :open()", { field = "sandbox" })
  end
end

return M
