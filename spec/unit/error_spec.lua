-- error_spec.lua - errors as values: one list of codes for C, Lua and the wire
-- SPDX-License-Identifier: MIT

local E = require "wovyr.error"
local H = require "spec.helper"

describe("Error codes", function()
  it("are those of core/base/codes.def, in the order of their numbers", function()
    local listed = {}
    for number, name in H.read("core/base/codes.def"):gmatch('WV_CODE%(%w[%w_]*, (%d+), "([%w_]+)"%)') do
      listed[tonumber(number)] = name
    end
    assert.same(listed, E.codes)
  end)

  it("are a closed set", function()
    assert.has_error(function()
      E.new("oops", "op", "text")
    end)
  end)
end)

describe("An Error", function()
  it("is a plain table that prints itself", function()
    local err = E.new("invalid", "open", "too large", { field = "limits.disk", value = 3, hint = "take less" })
    assert.equal("open: too large [invalid, field limits.disk]; take less", tostring(err))
    assert.equal("x: open: too large [invalid, field limits.disk]; take less", "x: " .. err)
    assert.equal("open: too large [invalid, field limits.disk]; take less!", err .. "!")
    assert.equal(tostring(err) .. tostring(err), err .. err)
    assert.is_nil(rawget(err, "__tostring"))
    assert.is_true(E.is(err))
    assert.is_false(E.is { code = "invalid" })
    assert.is_false(E.is "text")
  end)

  it("is rethrown as it is by assert", function()
    local err = E.new("timeout", "wait", "patience ran out")
    local ok, got = pcall(function()
      return _G.assert(nil, err) -- Lua's own, not busted's
    end)
    assert.is_false(ok)
    assert.equal(err, got)
  end)

  it("says whether to try again", function()
    for _, code in ipairs { "unavailable", "capacity", "rate_limited", "timeout" } do
      assert.is_true(E.new(code, "x", "y").retryable)
    end
    for _, code in ipairs { "invalid", "denied", "closed", "lost", "unknown_outcome", "limit", "system" } do
      assert.is_false(E.new(code, "x", "y").retryable)
    end
  end)

  it("is made of what C returns", function()
    local raw = { code = "not_found", op = "file", message = "no such file", errno = 2 }
    local err = E.adopt(raw, "read")
    assert.equal(raw, err)
    assert.is_true(E.is(err))
    assert.equal("file", err.op)
    assert.is_false(err.retryable)
    assert.equal("read", E.adopt({ code = "system", message = "x" }, "read").op)
    assert.equal("system", E.adopt("text", "read").code)
  end)

  it("is made of an ERROR message, number or name", function()
    local err = E.from_message({
      code = 4, sys = 2, op = "exec", field = "cmd", reason = "", message = "no such program",
    }, "start")
    assert.equal("not_found", err.code)
    assert.equal("start", err.op)
    assert.equal(2, err.errno)
    assert.equal("cmd", err.field)
    assert.is_nil(err.reason)
    assert.equal("exec: no such program", err.message)
    assert.equal("denied", E.from_message({ code = "denied", message = "" }, "x").code)
    -- A peer may say anything; what is no code of ours, or never leaves the library, is "system".
    assert.equal("system", E.from_message({ code = 99 }, "x").code)
    assert.equal("system", E.from_message({ code = 20 }, "x").code)
  end)

  it("is made of what Lua's io says", function()
    local file, text, errno = io.open("/no/such/file")
    assert.is_nil(file)
    local err = E.from_io("upload", text, errno, { field = "host_path" })
    assert.equal("not_found", err.code)
    assert.equal("host_path", err.field)
    assert.equal(2, err.errno)
  end)
end)
