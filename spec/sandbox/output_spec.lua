-- Output is what the program wrote: all of it, apart, in order, byte for byte.

local H = require "spec.helper"
local S = require "spec.support.session"

local function host_peak()
  return tonumber(H.read("/proc/self/status"):match("VmHWM:%s+(%d+)")) * 1024
end

-- Forget the peak so far (proc(5), clear_refs 5).
local function reset_peak()
  collectgarbage()
  collectgarbage()
  local file = assert(io.open("/proc/self/clear_refs", "w"))
  file:write("5")
  file:close()
end

describe("output", function()
  it("passes every byte value, stdout and stderr apart", S.session(function(s)
    local out = assert(s:exec { "python3", "-c", [[
import sys
sys.stdout.buffer.write(bytes(range(256)) * 3)
sys.stderr.buffer.write(bytes(reversed(range(256))))
]] })
    local up, down = {}, {}
    for i = 0, 255 do up[#up + 1], down[256 - i] = string.char(i), string.char(i) end
    assert.equal(table.concat(up):rep(3), out.stdout)
    assert.equal(table.concat(down), out.stderr)
  end))

  it("of short programs is never lost", S.session(function(s)
    local n = tonumber(os.getenv("WOVYR_SHORT_PROGRAMS")) or 500
    assert(s.files:write("print.sh", [[
head -c $1 /dev/zero | tr '\0' 'a'
head -c $2 /dev/zero | tr '\0' 'b' >&2
]]))
    for i = 1, n do
      local a, b = 1 + (i * 7919) % 200000, 1 + (i * 104729) % 200000
      local out = assert(s:exec { "sh", "print.sh", tostring(a), tostring(b) })
      assert.equal(a, #out.stdout)
      assert.equal(b, #out.stderr)
      assert.is_true(out.drained)
    end
  end))

  it("streams while the program runs", S.session(function(s)
    local seen = {}
    local out = assert(s:exec("for i in 1 2 3; do echo $i; sleep 0.2; done", {
      on_stdout = function(data) seen[#seen + 1] = data end,
    }))
    assert.is_true(out.ok)
    assert.same({ "1\n", "2\n", "3\n" }, seen)
  end))

  it("goes where stderr = merge says", S.session(function(s)
    local out = assert(s:exec("echo a; echo b >&2; echo c", { stderr = "merge" }))
    assert.equal("a\nb\nc\n", out.stdout)
    assert.equal("", out.stderr)
  end))

  it("over the cap keeps both ends and counts the rest", S.session(function(s)
    local out = assert(s:exec("echo first; head -c 4M /dev/zero; echo last", { output = "1M" }))
    assert.is_true(out.ok)
    assert.equal("first\n", out.stdout:sub(1, 6))
    assert.equal("last\n", out.stdout:sub(-5))
    assert.truthy(#out.stdout <= 2 ^ 20)
    assert.equal(6 + 4 * 2 ^ 20 + 5 - #out.stdout, out.missing.stdout)
    assert.same({ "output" }, out.resource_exceeded)
  end))

  it("up to the cap is whole", S.session(function(s)
    local out = assert(s:exec({ "head", "-c", "1M", "/dev/zero" }, { output = "1M" }))
    assert.equal(2 ^ 20, #out.stdout)
    assert.equal(0, out.missing.stdout)
    assert.same({}, out.resource_exceeded)
  end))

  it("in a flood costs the host no more than the cap", S.session(function(s)
    local size = os.getenv("WOVYR_FLOOD") or "1G"
    local cap = 16 * 2 ^ 20
    assert(s:exec({ "head", "-c", "1M", "/dev/zero" }, { output = cap }))
    reset_peak()
    local before = host_peak()
    local out = assert(s:exec({ "head", "-c", size, "/dev/zero" }, { output = cap, timeout = "10m" }))
    assert.is_true(out.ok)
    assert.truthy(host_peak() - before < cap + 8 * 2 ^ 20, "grew by " .. host_peak() - before)
  end))

  it("of a started process is followed, replayed, and its gap counted", S.session(function(s)
    local p = assert(s:start("head -c 3M /dev/zero; echo end", { log = "1M" }))
    assert(p:wait { timeout = 20 })
    local bytes, gap, tail = 0, 0, ""
    for item in assert(p:output()) do
      bytes, gap, tail = bytes + #item.data, gap + item.gap, item.data
      assert.equal("stdout", item.stream)
    end
    assert.equal(3 * 2 ^ 20 + 4, bytes + gap)
    assert.truthy(gap > 0)
    assert.equal("end\n", tail:sub(-4))
  end))

  it("of a background child is not waited for, and not invented", S.session(function(s)
    local out = assert(s:exec("(sleep 30; echo never) & echo now"))
    assert.equal("now\n", out.stdout)
    assert.is_false(out.drained)
    assert.truthy(out.duration < 10)
  end))
end)
