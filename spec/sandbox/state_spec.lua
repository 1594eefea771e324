-- A session is a living computer: what one exec leaves is there for the next.

local S = require "spec.support.session"

describe("a session", function()
  it("keeps files", S.session(function(s)
    S.run(s, "echo one > kept && mkdir -p ~/dir && echo two > ~/dir/kept && echo 3 > /tmp/kept")
    assert.equal("one\ntwo\n3\n", S.run(s, "cat kept ~/dir/kept /tmp/kept"))
  end))

  it("keeps background processes", S.session(function(s)
    S.run(s, "nohup sh -c 'while :; do date +%N > t && mv t tick; sleep 0.05; done' > /dev/null 2>&1 &")
    local first = S.run(s, "for i in $(seq 50); do test -s tick && break; sleep 0.05; done; cat tick")
    assert.not_equal("", first)
    assert.not_equal(first, S.run(s, "sleep 0.3; cat tick"))
  end))

  it("keeps a server that another exec talks to", S.session(function(s)
    assert(s:start { "python3", "-m", "http.server", "--bind", "127.0.0.1", "80" })
    local out = S.run(s, { "python3", "-c", [[
import time, urllib.request
for i in range(100):
    try:
        print(urllib.request.urlopen("http://127.0.0.1/").status)
        break
    except OSError:
        time.sleep(0.05)
]] })
    assert.equal("200\n", out)
  end))

  it("never sees another session", S.runtime(function(rt)
    local a, b = S.open(rt), S.open(rt)
    S.run(a, "echo secret > /workspace/f; echo secret > /tmp/f; echo secret > /dev/shm/f; echo > ~/f")
    assert(a:start { "sleep", "60" })
    S.run(b, "! test -e /workspace/f && ! test -e /tmp/f && ! test -e /dev/shm/f && ! test -e ~/f")
    assert.equal("", S.run(b, "grep -l sleep /proc/[0-9]*/comm || true"))
    assert(a:start { "python3", "-m", "http.server", "8000" })
    local out = assert(b:exec { "python3", "-c",
      "import socket, time; time.sleep(0.5); socket.create_connection(('127.0.0.1', 8000), 1)" })
    assert.is_false(out.ok)
    assert.truthy(out.stderr:find("ConnectionRefused", 1, true))
  end))

  it("tells what it is", S.session(function(s)
    local info = s:info()
    assert.equal("running", s:state())
    assert.equal("running", info.state)
    assert.equal("container", info.backend)
    assert.equal(3, info.level)
    assert.equal("host", info.template)
    assert.truthy(s.id:match("^%x+$") and #s.id == 32)
    for _, name in ipairs { "host_files", "network", "uid_range", "ns_ownership", "syscall_filter",
      "memory", "pids", "cpu", "disk", "tree_kill", "oom_evidence", "pause", "crash_cleanup" } do
      local g = info.guarantees[name]
      assert.truthy(g and (g.state == "enforced" or g.state == "weaker" or g.state == "absent"), name)
      assert.truthy(g.evidence and #g.evidence > 0, name)
    end
  end))

  it("is closed after kill, and says so", S.session(function(s)
    assert(s:kill())
    assert.equal("closed", s:state())
    local out, err = s:exec { "true" }
    assert.is_nil(out)
    assert.equal("closed", err.code)
    assert.equal("closed", select(2, s.files:read("x")).code)
  end))

  it("reports its usage", S.session(function(s)
    S.run(s, { "python3", "-c", "sum(range(3000000))" })
    local usage = assert(s:usage())
    if s:info().guarantees.memory.state == "enforced" then
      assert.truthy(usage.cpu_time > 0.01, "cpu_time")
      assert.truthy(usage.memory_peak > 1000000, "memory_peak")
      assert.truthy(usage.pids >= 1, "pids")
    end
  end))
end)
