-- The walls, tried from inside. The full attack suite is its own; these are the first ones.

local H = require "spec.helper"
local S = require "spec.support.session"

local function refused(s, command, opts)
  local out = assert(s:exec(command, opts or { user = "root" }))
  assert.is_false(out.ok, "worked: " .. out.stdout)
  return out.stderr
end

describe("root inside", function()
  it("cannot read a root-only file of the host", function()
    H.skip_unless("root")
    local planted = "/usr/share/.wovyr-planted"
    local file = assert(io.open(planted, "w"))
    file:write("secret")
    file:close()
    os.execute("chmod 600 " .. planted)
    local ok, err = pcall(S.session(function(s)
      assert.truthy(refused(s, { "cat", planted }):find("Permission denied", 1, true))
      assert.equal("denied", select(2, s.files:read(planted, { user = "root" })).code)
    end))
    os.remove(planted)
    assert(ok, err)
  end)

  it("cannot change the tree, the kernel, or its own walls", S.session(function(s)
    refused(s, { "touch", "/usr/x" })
    refused(s, { "touch", "/etc/x" })
    refused(s, { "mount", "-t", "tmpfs", "none", "/mnt" })
    refused(s, { "mount", "-o", "remount,rw", "/" })
    refused(s, { "umount", "/proc/sys" })
    refused(s, { "unshare", "-U", "true" })
    refused(s, { "unshare", "-n", "true" })
    refused(s, { "hostname", "other" })
    refused(s, "echo 1 > /proc/sys/kernel/core_pattern")
    refused(s, "echo b > /proc/sysrq-trigger")
    refused(s, { "mknod", "/tmp/null", "c", "1", "3" })
    refused(s, { "chroot", "/tmp", "true" })
  end))

  it("cannot reach the agent", S.session(function(s)
    for _, file in ipairs { "mem", "maps", "environ", "exe", "fd/3", "root/etc/passwd", "cwd" } do
      refused(s, { "head", "-c", "1", "/proc/1/" .. file })
    end
    refused(s, { "sh", "-c", "kill -KILL 1; sleep 0.2; test -e /proc/1/status && exit 1" })
    assert.equal("alive\n", S.run(s, "echo alive"))
  end))

  it("has the six capabilities and no way to more", S.session(function(s)
    local status = S.run(s, { "cat", "/proc/self/status" }, { user = "root" })
    assert.equal("00000000000000fb", status:match("CapBnd:%s*(%x+)"))
    assert.equal("00000000000000fb", status:match("CapEff:%s*(%x+)"))
    assert.equal("1", status:match("NoNewPrivs:%s*(%d)"))
    assert.equal("2", status:match("Seccomp:%s*(%d)"))
    local user = S.run(s, { "cat", "/proc/self/status" })
    assert.equal("0000000000000000", user:match("CapEff:%s*(%x+)"))
  end))

  it("can bind a low port and reach loopback, and nothing else", S.session(function(s)
    local out = S.run(s, { "python3", "-c", [[
import socket
a = socket.create_server(("127.0.0.1", 80))
b = socket.create_connection(("127.0.0.1", 80))
c = socket.create_server(("::1", 81), family=socket.AF_INET6)
for target in ("8.8.8.8", "169.254.169.254", "10.0.0.1", "192.168.0.1"):
    try:
        socket.create_connection((target, 80), 2)
        print("reached", target)
    except OSError as e:
        pass
for family in (socket.AF_PACKET, 38, 40, 16):   # packet, alg, vsock, netlink of a wrong kind
    try:
        socket.socket(family, socket.SOCK_RAW, 9)
        print("opened", family)
    except OSError:
        pass
print("done")
]] }, { user = "root" })
    assert.equal("done\n", out)
  end))
end)

describe("a command", function()
  it("sees three descriptors and nothing of ours", S.session(function(s)
    assert.equal("0 1 2 3\n", S.run(s, "cd /proc/self/fd && echo *"))
    assert.equal("no\n", S.run(s, "ls -l /proc/self/fd | grep -q socket && echo yes || echo no"))
  end))

  it("starts from a known state, whatever the host was like", S.session(function(s)
    local out = S.run(s, { "python3", "-c", [[
import os, signal, resource
print("cwd", os.getcwd())
print("umask", oct(os.umask(0)))
print("groups", os.getgroups())
print("ignored", [n.name for n in signal.valid_signals() if isinstance(n, signal.Signals)
                  and signal.getsignal(n) == signal.SIG_IGN and n.name not in ("SIGPIPE", "SIGXFSZ")])
print("masked", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
print("core", resource.getrlimit(resource.RLIMIT_CORE))
print("nice", os.nice(0))
print("sched", os.sched_getscheduler(0))
print("sid", os.getsid(0) == os.getpid())
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
print("ambient", status["CapAmb"])
print("oom", open("/proc/self/oom_score_adj").read().strip())
print("slack", open("/proc/self/timerslack_ns").read().strip() if os.path.exists("/proc/self/timerslack_ns") else "")
try:
    os.open("/dev/tty", os.O_RDWR)
    print("tty yes")
except OSError as e:
    print("tty", e.errno)
]] })
    -- A core limit of 1 is what refuses also a core_pattern that is a pipe (core(5)).
    assert.equal([[
cwd /workspace
umask 0o22
groups [1000]
ignored []
masked []
core (1, 1)
nice 0
sched 0
sid True
ambient 0000000000000000
oom 200
slack 50000
tty 6
]], out)
  end))

  it("cannot take inotify, pids or descriptors from another session", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      local a, b = S.open(rt), S.open(rt)
      assert(a:start { "python3", "-c", [[
import ctypes, time, os
libc = ctypes.CDLL(None)
while libc.inotify_init() >= 0: pass
pids = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        break
open("/tmp/full", "w")
time.sleep(60)
]] })
      S.run(a, "for i in $(seq 100); do test -e /tmp/full && exit 0; sleep 0.1; done; exit 1",
        { user = "root" })
      S.run(b, { "python3", "-c", [[
import ctypes, os
assert ctypes.CDLL(None).inotify_init() >= 0
for i in range(30):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
]] })
    end)()
  end)
end)
