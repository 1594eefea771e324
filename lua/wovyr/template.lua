--- template.lua - what a sandbox's root looks like, made ahead of time.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local options = require "wovyr.options"
local schema = require "wovyr.schema"

local M = {}

local BUILD_PATIENCE = 3600
local PATIENCE = 60

---@class wovyr.Template
---@field name string
local Template = {}
Template.__index = Template
Template.__name = "wovyr.Template"
M.Template = Template

--- A definition. Raises for a wrong option.
---@param runtime wovyr.Runtime
---@param def table { name, base = { tree = absolute directory } | { tar = absolute file } }
---@return wovyr.Template
function M.new(runtime, def)
  def = schema.check(options.template, def, "template")
  if not def.name or not def.name:match("^%w[%w%._-]*$") or #def.name > 127
    or def.name == "host" then
    E.misuse("template", "name must be letters, digits, '.', '_', '-', and not \"host\"", {
      field = "name",
      value = def.name,
    })
  end
  return setmetatable({ runtime = runtime, name = def.name, base = def.base }, Template)
end

--- Unpack it into this machine's store. Needs root.
---@param o? { timeout: number|string, on_log: function, offline: boolean, no_cache: boolean }
---@return table? result { cached, duration }
---@return wovyr.Error? err "invalid", "not_found", "denied", "limit"
function Template:build(o)
  o = schema.check(options.build, o, "build")
  local base = self.base or {}
  local source = base.tree or base.tar
  local field = base.tree and "base.tree" or base.tar and "base.tar" or "base"
  if not source or (base.tree and base.tar) then
    return nil, E.new("invalid", "build", "base is { tree = directory } or { tar = file }", {
      field = "base",
    })
  elseif source:sub(1, 1) ~= "/" or source:find("\0", 1, true) or #source > 4095 then
    return nil, E.new("invalid", "build", "the path must be absolute", {
      field = field,
      value = source,
    })
  end
  local began = clock.now()
  local deadline = clock.deadline(o.timeout or BUILD_PATIENCE)
  local control, err = self.runtime:connection()
  if not control then
    return nil, err
  end
  local answer
  answer, err = control:ask("build", "BUILD", {
    name = self.name,
    kind = base.tree and "tree" or "tar",
    source = source,
  }, { deadline = deadline, effect = true })
  if not answer then
    return nil, err
  end
  return { cached = false, duration = clock.now() - began }
end

--- Remove it from the store; sessions that use it are not touched.
---@param o? { timeout: number|string }
---@return boolean? ok
---@return wovyr.Error? err "not_found"
function Template:remove(o)
  o = schema.check(options.wait, o, "remove")
  local deadline = clock.deadline(o.timeout or PATIENCE)
  local control, err = self.runtime:connection()
  if not control then
    return nil, err
  end
  local answer
  answer, err = control:ask("remove", "FORGET", { name = self.name }, {
    deadline = deadline,
    effect = true,
  })
  if not answer then
    return nil, err
  end
  return true
end

return M
