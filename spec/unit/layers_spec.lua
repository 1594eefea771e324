-- layers_spec.lua - dependencies point downwards only (docs/architecture.md, "Layers")
-- SPDX-License-Identifier: MIT

local H = require "spec.helper"

-- Who may include whom, beside itself.
local C_LAYERS = {
  base = {},
  wire = { "base" },
  channel = { "wire", "base" },
  isolation = { "wire", "base" },
  backend = { "isolation", "channel", "wire", "base" },
  supervisor = { "isolation", "backend", "channel", "wire", "base" },
  client = { "channel", "wire", "base" },
  lua = { "client", "channel", "wire", "base" },
  guest = { "channel", "wire", "base" },
}
local GENERATED = { ["build_id.h"] = true, ["seccomp_filter.h"] = true }

-- Calls that a library inside somebody's process must not make: no fork of the host, no threads,
-- no handlers, no waiting for children that are not ours.
local HOST_NEVER = { "fork", "vfork", "system", "popen", "pthread_create", "signal", "sigaction",
  "waitpid", "wait", "exit", "chdir", "umask", "setenv", "putenv" }

local function files(where, patterns)
  local list = {}
  local _, out = H.sh("find " .. where .. " -type f 2>/dev/null | LC_ALL=C sort")
  for path in out:gmatch("[^\n]+") do
    for _, pattern in ipairs(patterns) do
      if path:find(pattern) then
        list[#list + 1] = path
        break
      end
    end
  end
  return list
end

local function layer_of(path)
  return path:match("^core/(%w+)/") or path:match("^(guest)/") or path:match("^(%w+)/")
end

local function without_comments(text)
  return (text:gsub("/%*.-%*/", ""):gsub("//[^\n]*", ""))
end

local function clean(wrong)
  assert(#wrong == 0, "\n  " .. table.concat(wrong, "\n  "))
end

describe("C layers", function()
  local sources = files("core guest", { "%.[chS]$", "%.def$" })

  it("know every directory", function()
    assert.is_true(#sources > 20)
    for _, path in ipairs(sources) do
      assert(C_LAYERS[layer_of(path)], path .. " is in no layer of this spec")
    end
  end)

  it("include downwards only", function()
    local wrong = {}
    for _, path in ipairs(sources) do
      local layer = layer_of(path)
      local may = { [layer] = true }
      for _, below in ipairs(C_LAYERS[layer]) do
        may[below] = true
      end
      for name in without_comments(H.read(path)):gmatch('#%s*include%s*"([^"]+)"') do
        if not GENERATED[name] and not may[name:match("^(%w+)/") or "?"] then
          wrong[#wrong + 1] = path .. " includes " .. name
        end
      end
    end
    clean(wrong)
  end)

  it("name Lua in core/lua only", function()
    local wrong = {}
    for _, path in ipairs(sources) do
      if layer_of(path) ~= "lua" and without_comments(H.read(path)):find("#%s*include%s*<l%w*lua?x?%w*%.h>") then
        wrong[#wrong + 1] = path
      end
    end
    clean(wrong)
  end)

  it("of the module never touch the host process", function()
    local wrong = {}
    for _, path in ipairs(sources) do
      local layer = layer_of(path)
      if layer == "client" or layer == "lua" or layer == "channel" then
        local text = without_comments(H.read(path))
        for _, call in ipairs(HOST_NEVER) do
          if text:find("%f[%w_]" .. call .. "%(") then
            wrong[#wrong + 1] = path .. " calls " .. call
          end
        end
      end
    end
    clean(wrong)
  end)
end)

describe("The module", function()
  local core = "build/" .. H.vm .. "/wovyr/core.so"

  it("exports luaopen_wovyr_core and nothing else", function()
    local status, out = H.sh("nm -D --defined-only " .. core)
    assert.equal(0, status, out)
    assert.equal("luaopen_wovyr_core\n", (out:gsub("%x+ %a ", "")))
  end)

  it("has no writable globals: a process may hold several Lua states", function()
    local _, out = H.sh("objdump -t " .. core)
    local wrong = {}
    for kind, section, size, name in out:gmatch("\n%x+ (.......) (%S+)\t(%x+) ([^\n]+)") do
      if (section == ".data" or section == ".bss") and kind:find("O") and tonumber(size, 16) > 1
        and not name:find("__dso_handle") then
        wrong[#wrong + 1] = name
      end
    end
    clean(wrong)
  end)
end)

-- The part of lua/wovyr that is data in, data out.
local function is_pure(module)
  return module:find("^wovyr%.policy") or module == "wovyr.schema" or module == "wovyr.units"
    or module == "wovyr.options" or module == "wovyr.error"
end

describe("Lua layers", function()
  local requires = {}
  for _, path in ipairs(files("lua/wovyr", { "%.lua$" })) do
    local name = path:gsub("^lua/", ""):gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
    requires[name] = {}
    if not path:find("_meta") then
      for module in H.read(path):gsub("%-%-[^\n]*", ""):gmatch("require%s*%(?%s*[\"']([%w_.]+)[\"']") do
        requires[name][module] = path
      end
    end
  end

  local function each(fn)
    local wrong = {}
    for name, modules in pairs(requires) do
      for module, path in pairs(modules) do
        if fn(name, module) then
          wrong[#wrong + 1] = path .. " requires " .. module
        end
      end
    end
    table.sort(wrong)
    clean(wrong)
  end

  it("keep policy pure: no C, no loop, nothing that acts", function()
    each(function(name, module)
      return is_pure(name) and module:find("^wovyr") and not is_pure(module)
    end)
  end)

  it("name event loops in wovyr.io only", function()
    each(function(name, module)
      local loop = module == "luv" or module:find("^cqueues") or module:find("^ngx") or module:find("^resty")
      return loop and not name:find("^wovyr%.io%.") and not name:find("^wovyr%.server")
    end)
  end)

  it("never require wovyr itself from below", function()
    each(function(name, module)
      return module == "wovyr" and not name:find("^wovyr%.repl") and not name:find("^wovyr%.server")
    end)
  end)

  it("start no process and touch no environment by Lua's own means", function()
    local wrong = {}
    for _, path in ipairs(files("lua/wovyr", { "%.lua$" })) do
      local text = H.read(path):gsub("%-%-[^\n]*", "")
      for _, call in ipairs { "os%.execute", "io%.popen", "os%.exit", "os%.setlocale" } do
        if text:find("%f[%w]" .. call) then
          wrong[#wrong + 1] = path .. " uses " .. call:gsub("%%", "")
        end
      end
    end
    clean(wrong)
  end)
end)
