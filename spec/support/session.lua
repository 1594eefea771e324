-- session.lua - a runtime of its own for each spec, ended before the helper counts leftovers

local wovyr = require "wovyr"

local M = {}

local function merged(spec)
  local all = { trust = "verified" }
  for key, value in pairs(spec or {}) do all[key] = value end
  return all
end

--- A spec body that gets a fresh Runtime: `it("...", M.runtime(function(rt) ... end))`.
function M.runtime(fn)
  return function()
    local rt = wovyr.runtime {}
    local ok, err = pcall(fn, rt)
    rt:close()
    if not ok then error(err, 0) end
  end
end

--- A spec body that gets an open Session: `it("...", M.session(function(s, rt) ... end, spec))`.
function M.session(fn, spec)
  return M.runtime(function(rt)
    local s = assert(rt:open(merged(spec)))
    fn(s, rt)
  end)
end

--- Open another session in rt.
function M.open(rt, spec)
  return assert(rt:open(merged(spec)))
end

--- Run a command that must succeed; returns its stdout.
function M.run(s, cmd, opts)
  local out = assert(s:exec(cmd, opts))
  if not out.ok then error(("%s\n%s%s"):format(out:describe(), out.stdout, out.stderr), 2) end
  return out.stdout
end

--- Does this host enforce the guarantee for sessions of this user?
function M.enforced(name)
  local rt = wovyr.runtime {}
  local s = assert(rt:open(merged()))
  local state = s:info().guarantees[name].state
  rt:close()
  return state == "enforced"
end

return M
