-- schema_spec.lua - option tables: one checker, typed errors, help with names
-- SPDX-License-Identifier: MIT

local E = require "wovyr.error"
local options = require "wovyr.options"
local schema = require "wovyr.schema"

local function refused(fields, given)
  local ok, err = pcall(schema.check, fields, given, "op")
  assert.is_false(ok)
  assert.is_true(E.is(err), tostring(err))
  assert.equal("invalid", err.code)
  assert.equal("op", err.op)
  return err
end

describe("A checked option table", function()
  it("is a copy in the library's units", function()
    local given = { timeout = "500ms", output = "1M", env = { A = "1", B = 2 }, umask = "0022" }
    local o = schema.check(options.exec, given, "exec")
    assert.equal(0.5, o.timeout)
    assert.equal(2 ^ 20, o.output)
    assert.same({ A = "1", B = "2" }, o.env)
    assert.equal(18, o.umask)
    assert.equal("500ms", given.timeout)
    assert.are_not.equal(given.env, o.env)
  end)

  it("has the defaults of what was not given", function()
    assert.equal(1000, schema.check(options.list, {}, "list").limit)
    assert.equal(64 * 2 ^ 20, schema.check(options.read, nil, "read").max)
    assert.same({ limit = 16 * 2 ^ 20, over = "kill" },
      schema.check(options.exec, { output = { over = "kill" } }, "exec").output)
  end)

  it("may say false where nothing is meant", function()
    assert.is_false(schema.check(options.exec, { timeout = false }, "exec").timeout)
    assert.is_false(schema.check(options.spec, { idle_ttl = false }, "open").idle_ttl)
    refused(options.exec, { cpu_time = false })
  end)
end)

describe("A wrong option", function()
  it("names field and value, also deep inside", function()
    local err = refused(options.spec, { limits = { memory = "1Q" } })
    assert.equal("limits.memory", err.field)
    assert.equal("1Q", err.value)
    assert.truthy(err.message:find("512M", 1, true))
    assert.equal("limits", refused(options.spec, { limits = 5 }).field)
    assert.equal("env", refused(options.exec, { env = { [1] = "A=1" } }).field)
    assert.equal("shell", refused(options.exec, { shell = { "a", 5 } }).field)
    assert.equal("shell", refused(options.exec, { shell = { "a", nil, "c" } }).field)
    assert.equal("nice", refused(options.exec, { nice = 1.5 }).field)
    assert.equal("options", refused(options.exec, "fast").field)
  end)

  it("of unknown name gets the nearest one", function()
    for wrong, right in pairs {
      timout = "timeout", Timeout = "timeout", stdim = "stdin", on_stdot = "on_stdout", evn = "env",
      cdw = "cwd", out = "output",
    } do
      local err = refused(options.exec, { [wrong] = 1 })
      assert.equal(wrong, err.field)
      assert.truthy(err.hint:find('"' .. right .. '"', 1, true), wrong .. ": " .. err.hint)
    end
  end)

  it("that resembles nothing gets the list", function()
    assert.truthy(refused(options.open, { zzzzzzzz = 1 }).hint:find("known: ", 1, true))
    assert.equal("1", refused(options.open, { "x" }).field)
  end)

  it("outside its set gets the nearest value", function()
    local err = refused(options.spec, { trust = "verifed" })
    assert.equal("trust", err.field)
    assert.truthy(err.hint:find('"verified"', 1, true))
    assert.truthy(err.message:find('"first_party"', 1, true))
  end)

  it("is shown short", function()
    assert.truthy(#tostring(refused(options.exec, { timeout = ("x"):rep(1e6) })) < 300)
  end)
end)

describe("An argument", function()
  it("of a wrong type raises the same error", function()
    local ok, err = pcall(schema.argument, "exec", "cmd", 42, "string|table")
    assert.is_false(ok)
    assert.equal("invalid", err.code)
    assert.equal("cmd", err.field)
    schema.argument("exec", "cmd", {}, "string|table")
  end)
end)

describe("The option tables", function()
  it("are data that the checker knows, with defaults that it takes", function()
    local function walk(fields, path)
      local seen = {}
      for _, def in ipairs(fields) do
        local where = path .. "." .. def.name
        assert.is_nil(seen[def.name], where)
        seen[def.name] = true
        assert.is_true(def.type ~= nil or def.values ~= nil or def.fields ~= nil, where)
        for key, value in pairs(def) do
          assert.are_not.equal("function", type(value), where .. "." .. key)
        end
        if def.fields then
          walk(def.fields, where)
        end
      end
      schema.check(fields, {}, path)
    end
    for name, fields in pairs(options) do
      if type(fields[1]) == "table" then
        walk(fields, name)
      end
    end
  end)
end)
