-- meta_spec.lua - _meta.lua says what the module has: neither more nor less
-- SPDX-License-Identifier: MIT

local H = require "spec.helper"
local core = require "wovyr.core"
local options = require "wovyr.options"

local text = H.read "lua/wovyr/_meta.lua"

-- class name -> set of methods; "core" -> functions
local function declared()
  local classes = {}
  for class, _, name in text:gmatch "\nfunction (%w+)([%.:])([%w_]+)%(" do
    classes[class] = classes[class] or {}
    classes[class][name] = true
  end
  return classes
end

-- The userdata's real method tables, by the names that their metatables carry.
local function real()
  local classes = {}
  for _, mt in pairs(debug.getregistry()) do
    local name = type(mt) == "table" and rawget(mt, "__name")
    local class = type(name) == "string" and name:match "^wovyr%.(%w+)$"
    if class and rawget(mt, "__metatable") == false then
      classes[class] = {}
      for method in pairs(mt.__index) do
        classes[class][method] = true
      end
      assert.is_function(mt.__gc)
      assert.is_function(mt.__close)
      assert.is_function(mt.__index.close)
    end
  end
  classes.core = {}
  for name, value in pairs(core) do
    if type(value) == "function" then
      classes.core[name] = true
    end
  end
  return classes
end

-- @field names of a class, and those of the class that it extends.
local function fields_of(class)
  local block = text:match("\n%-%-%-@class wovyr%." .. class .. "[^\n]*\n(.-)\n\n")
  local parent = text:match("\n%-%-%-@class wovyr%." .. class .. " : wovyr%.(%w+)")
  local names = parent and fields_of(parent) or {}
  for name in ("\n" .. block):gmatch "\n%-%-%-@field ([%w_]+)" do
    names[name] = true
  end
  return names
end

local function names_of(schema)
  local names = {}
  for _, def in ipairs(schema) do
    names[def.name] = true
  end
  return names
end

describe("_meta.lua", function()
  it("declares the classes of wovyr.core, both ways", function()
    local here, there = declared(), real()
    assert.truthy(there.Link and there.File)
    assert.same(there, here)
  end)

  it("declares the options, both ways", function()
    assert.same(names_of(options.spec), fields_of "Spec")
    assert.same(names_of(options.limits), fields_of "Limits")
    assert.same(names_of(options.exec), fields_of "ExecOpts")
    assert.same(names_of(options.start), fields_of "StartOpts")
  end)

  it("has the constants of the module", function()
    assert.truthy(core.BUILD:match "^%x+$")
    assert.truthy(#core.VERSION > 0)
    assert.same({ BUILD = true, VERSION = true, codes = true }, fields_of "core")
  end)
end)
