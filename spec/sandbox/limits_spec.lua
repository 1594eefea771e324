-- Each limit, hit on purpose: the cause is right, the agent survives, the next exec works.

local H = require "spec.helper"
local S = require "spec.support.session"

local HOG = { "python3", "-c", "x = []\nwhile True: x.append(bytearray(4 << 20))" }

local function has(list, name)
  for _, item in ipairs(list) do if item == name then return true end end
  return false
end

local function alive(s)
  assert.equal("alive\n", S.run(s, { "echo", "alive" }))
end

describe("the limit", function()
  it("memory ends the hog as oom", function()
    H.skip_unless("cgroups")
    S.session(function(s)
      for _ = 1, 3 do
        local out = assert(s:exec(HOG))
        assert.equal("oom", out.cause)
        assert.equal("KILL", out.signal)
        assert.is_true(has(out.resource_exceeded, "memory"))
        assert.truthy(out:describe():find("oom", 1, true))
        alive(s)
      end
    end, { limits = { memory = "192M", disk = "64M" } })()
  end)

  it("memory counts files in RAM, and they can be removed", function()
    H.skip_unless("cgroups")
    S.session(function(s)
      local out = assert(s:exec("head -c 100M /dev/zero > full; echo $?"))
      assert.truthy(out.stderr:find("No space left", 1, true))
      alive(s)
      S.run(s, "rm full")
    end, { limits = { memory = "192M", disk = "64M" } })()
  end)

  it("pids stops a fork, and says so", function()
    H.skip_unless("cgroups")
    S.session(function(s)
      local out = assert(s:exec { "python3", "-c", [[
import os, time, sys
for i in range(200):
    if os.fork() == 0:
        time.sleep(2)
        os._exit(0)
]] })
      assert.equal("exited", out.cause)
      assert.is_false(out.ok)
      assert.truthy(out.stderr:find("BlockingIOError", 1, true))
      assert.is_true(has(out.resource_exceeded, "pids"))
      S.run(s, "sleep 2.2")
      alive(s)
    end, { limits = { pids = 40 } })()
  end)

  it("cpus is a quota over all processes", function()
    H.skip_unless("cgroups")
    S.session(function(s)
      local out = assert(s:exec(
        "for i in 1 2 3; do (while :; do :; done) & done; sleep 1; kill %1 %2 %3; exit 1"))
      assert.is_true(has(out.resource_exceeded, "cpu"))
      assert.truthy(s:usage().cpu_time < 0.5 + 0.2 * out.duration, "used " .. s:usage().cpu_time)
      alive(s)
    end, { limits = { cpus = 0.1 } })()
  end)

  it("cpu_time ends a spinner and its tree", S.session(function(s)
    local out = assert(s:exec("while :; do :; done", { cpu_time = "500ms", timeout = "1m" }))
    assert.equal("timeout", out.cause)
    assert.equal("cpu_time", out.reason)
    alive(s)
  end))

  it("disk is a full disk, not a dead program", S.session(function(s)
    local out = assert(s:exec("head -c 40M /dev/zero > full || exit 7"))
    assert.equal("exited", out.cause)
    assert.equal(7, out.exit_code)
    assert.is_true(has(out.resource_exceeded, "disk"))
    alive(s)
    S.run(s, "rm full && head -c 1M /dev/zero > part")
  end, { limits = { disk = "16M" } }))

  it("disk counts all writable places as one", S.session(function(s)
    local out = assert(s:exec([[
for d in /workspace /tmp ~ /dev/shm /var/tmp; do head -c 8M /dev/zero > $d/f || exit 9; done]]))
    assert.equal(9, out.exit_code)
    alive(s)
  end, { limits = { disk = "16M" } }))

  it("nofile is what the program sees", S.session(function(s)
    assert.equal("64\n64\n", S.run(s, "ulimit -n; ulimit -Hn"))
    local out = assert(s:exec { "python3", "-c",
      "f = []\nwhile True: f.append(open('/dev/null'))" })
    assert.equal("exited", out.cause)
    assert.truthy(out.stderr:find("Too many open files", 1, true))
    alive(s)
  end, { limits = { nofile = 64 } }))

  it("timeout keeps what was printed", S.session(function(s)
    local out = assert(s:exec("echo partial; sleep 60", { timeout = "2s" }))
    assert.equal("timeout", out.cause)
    assert.equal("partial\n", out.stdout)
    assert.truthy(out:describe():find("timeout", 1, true))
    alive(s)
  end))

  it("output kills when asked to", S.session(function(s)
    local out = assert(s:exec("yes", { output = { limit = "1M", over = "kill" }, timeout = "1m" }))
    assert.equal("output", out.cause)
    assert.is_true(has(out.resource_exceeded, "output"))
    alive(s)
  end))

  it("that was not hit is not named", S.session(function(s)
    local out = assert(s:exec("exit 1"))
    assert.same({}, out.resource_exceeded)
  end))
end)

describe("a limit that this host cannot enforce", function()
  it("is refused before anything runs, unless it is named in best_effort", function()
    H.skip_unless("no-cgroups")
    S.runtime(function(rt)
      local s, err = rt:open { trust = "verified", limits = { memory = "256M" } }
      assert.is_nil(s)
      assert.equal("unsupported", err.code)
      assert.equal("limits.memory", err.field)
      s = assert(rt:open { trust = "verified", limits = { memory = "256M" }, best_effort = { "memory" } })
      assert.not_equal("enforced", s:info().guarantees.memory.state)
    end)()
  end)
end)
