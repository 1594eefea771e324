-- Lifetimes: kept by the supervisor, also while this program is stuck.

local S = require "spec.support.session"
local now = require("wovyr.core").now

-- Block this whole program, as a stuck host would.
local function stuck(seconds)
  os.execute("sleep " .. seconds)
end

local function wait_closed(s, seconds)
  local deadline = now() + seconds
  while s:state() ~= "closed" and now() < deadline do s:exec({ "true" }, { timeout = 1 }) stuck(0.05) end
  return s:state()
end

describe("a session", function()
  it("that is idle ends within a second of its time", S.session(function(s)
    local began = now()
    stuck(0.8)
    assert.equal("running", s:state())
    stuck(1.2)
    assert.equal("closed", s:state())
    assert.truthy(now() - began < 2.5)
    local _, err = s:exec { "true" }
    assert.equal("closed", err.code)
    assert.equal("idle_ttl", err.reason)
  end, { idle_ttl = "1s" }))

  it("is not idle while a foreground exec runs", S.session(function(s)
    local out = assert(s:exec { "sh", "-c", "sleep 2.5; echo done" })
    assert.equal("done\n", out.stdout)
    assert.equal("running", s:state())
  end, { idle_ttl = "1s" }))

  it("is kept by touch", S.session(function(s)
    for _ = 1, 4 do
      stuck(0.5)
      assert(s:touch())
    end
    assert.equal("running", s:state())
  end, { idle_ttl = "1s" }))

  it("ends at its lifetime, whatever runs", S.session(function(s)
    local out, err = s:exec({ "sleep", "30" })
    assert.is_nil(out)
    assert.equal("closed", err.code)
    assert.equal("lifetime", err.reason)
    assert.equal("closed", s:state())
  end, { lifetime = "1s" }))

  it("is given more time by extend", S.session(function(s)
    assert(s:extend("1h"))
    stuck(1.5)
    assert.equal("running", s:state())
    assert(s:extend("500ms"))
    assert.equal("closed", wait_closed(s, 3))
  end, { lifetime = "1s" }))
end)
