-- demo.lua - the main job, on real input: a living computer for code that nobody has read.
--
-- Run it with `make demo`. Every step checks what it got; the first surprise ends the
-- program with a non-zero status.

local wovyr = require "wovyr"
local now = require("wovyr.core").now

local started = os.clock()
local step_name

local function step(name, fn)
  step_name = name
  io.write(("\n== %s\n"):format(name))
  local before = now()
  fn()
  io.write(("   %.1f ms\n"):format((now() - before) * 1000))
end

-- A demo that shows a wrong result is worse than none: say which step, and stop.
local function expect(ok, what, ...)
  if ok then return ok, what, ... end
  error(("step %q: %s"):format(step_name, tostring(what)), 0)
end

local function show(text)
  io.write((text:gsub("[^\n]+", "   | %0")))
end

local spec = {
  trust = "verified", -- this code was reviewed; `untrusted` (the default) asks for gVisor
  limits = { memory = "256M", pids = 64, cpus = 1, disk = "128M" },
  best_effort = { "memory", "pids", "cpus" }, -- an ordinary user may have no cgroups
}

local PACKAGES = [==[
import sys, collections, json, time
sections = collections.Counter()
size = count = 0
for n, line in enumerate(open("status", encoding="utf-8")):
    if line.startswith("Package: "):
        count += 1
        if count % 100 == 0:
            print("read", count, "packages", flush=True)
    elif line.startswith("Section: "):
        sections[line.split()[1]] += 1
    elif line.startswith("Installed-Size: "):
        size += int(line.split()[1])
json.dump({"packages": count, "megabytes": size // 1024, "sections": dict(sections)},
          open("summary.json", "w"))
print("done:", count, "packages")
]==]

local CLIENT = [[
import time, urllib.request, urllib.error
for attempt in range(100):
    try:
        print(urllib.request.urlopen("http://127.0.0.1/summary.json").read().decode())
        break
    except urllib.error.URLError:
        time.sleep(0.1)
]]

local HOG = "x = []\nwhile True: x.append(bytearray(8 << 20))"

local sandbox, session
local secret = os.tmpname()

local function main()
  step("the decision, with its reasons", function()
    sandbox = expect(wovyr.sandbox(spec))
    show(sandbox:explain() .. "\n")
  end)

  step("open", function()
    session = expect(sandbox:open())
    expect(session:state() == "running", "the session does not run")
  end)

  step("write this machine's own package database in", function()
    local stat = expect(session.files:upload("/var/lib/dpkg/status", "status"))
    show(("/workspace/status, %d bytes\n"):format(stat.size))
    expect(session.files:write("packages.py", PACKAGES))
  end)

  step("a Python job streams its progress", function()
    local chunks = 0
    local out = expect(session:exec({ "python3", "packages.py" }, {
      on_stdout = function(data)
        chunks = chunks + 1
        show(data)
      end,
    }))
    out:check()
    expect(chunks > 1, "the output came in one piece: nothing was streamed")
  end)

  step("a second exec finds what the first left", function()
    local out = expect(session:exec("ls -l summary.json && wc -c < summary.json"))
    out:check()
    show(out.stdout)
  end)

  step("a background server answers another exec", function()
    local server = expect(session:start({ "python3", "-m", "http.server", "80" }))
    local out = expect(session:exec({ "python3", "-c", CLIENT }))
    out:check()
    expect(out.stdout:find('"packages"', 1, true), "the server did not answer with the summary")
    show(out.stdout:sub(1, 72) .. " ...\n")
    expect(server:kill())
    expect(server:wait { timeout = 10 })
  end)

  step("the network is refused", function()
    local out = expect(session:exec({ "python3", "-c", [[
import socket
for target in ("1.1.1.1", 53), ("169.254.169.254", 80), ("10.0.0.1", 22):
    try:
        socket.create_connection(target, timeout=3)
        print("REACHED", target)
    except OSError as e:
        print(target[0], "->", e)
]] }))
    show(out.stdout)
    expect(out.ok and not out.stdout:find("REACHED", 1, true), "something outside was reached")
  end)

  step("a secret of the host is refused, even to root inside", function()
    local file = expect(io.open(secret, "w"))
    file:write("the host's secret\n")
    file:close()
    local out = expect(session:exec({ "cat", secret, "/etc/shadow" }, { user = "root" }))
    show(out.stderr)
    expect(not out.ok and out.stdout == "", "a file of the host was read")
  end)

  step("a memory hog ends as oom, and the session lives on", function()
    local state = session:info().guarantees.memory.state
    if state ~= "enforced" then
      show("left out: this host does not limit memory for this user (" .. state .. ")\n")
      return
    end
    local out = expect(session:exec({ "python3", "-c", HOG }))
    show(out:describe() .. "\n")
    expect(out.cause == "oom", "the hog ended as " .. out:describe())
    local again = expect(session:exec({ "python3", "-c", "print('still here')" }))
    show(again.stdout)
    expect(again.stdout == "still here\n", "the next exec did not work")
  end)

  step("results are read back", function()
    local data = expect(session.files:read("summary.json"))
    local count = tonumber(data:match('"packages": (%d+)'))
    local own = 0
    for line in io.lines("/var/lib/dpkg/status") do
      if line:find("^Package: ") then own = own + 1 end
    end
    expect(count == own, ("the job counted %s packages, this machine has %d"):format(count, own))
    show(("%d packages, as on this machine\n"):format(count))
  end)

  step("close: nothing is left", function()
    expect(session:kill())
    expect(session:state() == "closed", "the session is " .. session:state())
  end)
end

local ok, err = pcall(main)
os.remove(secret)
if not ok then
  io.stderr:write("\nFAILED: ", tostring(err), "\n")
  os.exit(1)
end
io.write(("\nall steps done; %.0f ms of CPU in this process\n"):format(
  (os.clock() - started) * 1000))
