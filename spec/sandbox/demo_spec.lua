-- The demo does what it shows, and notices when any of its steps goes wrong.

local H = require "spec.helper"

local function demo(sabotage)
  return H.sh(("SABOTAGE=%s %s -l spec.support.sabotage examples/demo.lua"):format(sabotage, H.vm))
end

describe("examples/demo.lua", function()
  it("runs", function()
    local status, text = H.sh(H.vm .. " examples/demo.lua")
    assert.equal(0, status, text)
    assert.truthy(text:find("all steps done", 1, true))
  end)

  for _, step in ipairs { "decision", "open", "upload", "stream", "state", "server", "network", "secret",
    "results", "close" } do
    it("notices when this goes wrong: " .. step, function()
      local status, text = demo(step)
      assert.equal(1, status, text)
      assert.truthy(text:find("FAILED", 1, true), text)
    end)
  end

  for _, step in ipairs { "oom", "after" } do
    it("notices when this goes wrong: " .. step, function()
      H.skip_unless("cgroups")
      local status, text = demo(step)
      assert.equal(1, status, text)
    end)
  end
end)
