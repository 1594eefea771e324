-- The crash matrix: kill -9 of any part, at any point. What is left is nothing, and the
-- next open works. (What is left is counted by the helper after each spec.)

local H = require "spec.helper"
local Host = require "spec.support.host"
local S = require "spec.support.session"

-- Opens, starts something that would outlive it, and then works until something ends it.
local WORKER = [[
local wovyr = require "wovyr"
io.stdout:setvbuf("no")
local s = assert(wovyr.open { trust = "verified" })
assert(s:start("trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000"))
print("ready")
while true do
  local out, err = s:exec({ "true" }, { timeout = "5s" })
  if not out then
    print("ended " .. err.code)
    break
  end
end
-- the next open works, in the same host
local again, err
for _ = 1, 50 do
  again, err = wovyr.open { trust = "verified" }
  if again then break end
end
assert(again, tostring(err))
assert(again:exec({ "true" })):check()
print("reopened")
]]

-- Opens and closes without end.
local CYCLER = [[
local wovyr = require "wovyr"
io.stdout:setvbuf("no")
print("ready")
while true do
  local s, err = wovyr.open { trust = "verified" }
  if s then
    local p = s:start("setsid sleep 1000 & sleep 1000")
    s:exec({ "true" }, { timeout = "5s" })
    s:kill()
  end
end
]]

local function next_open_works()
  S.session(function(s) assert.equal("ok\n", S.run(s, { "echo", "ok" })) end)()
end

local function nothing_runs()
  return H.eventually(function() return next(Host.roles()) == nil end, 10)
end

describe("kill -9 of", function()
  it("the host ends everything", function()
    local host = Host.start(WORKER)
    Host.wait_for(host, "ready")
    Host.kill(host.pid)
    assert.truthy(nothing_runs(), "processes are left")
    next_open_works()
  end)

  for _, role in ipairs { "wovyr-super", "wovyr-launcher", "wovyr-agent" } do
    it(role .. " ends the session; the host is told at once and can open again", function()
      local host = Host.start(WORKER)
      Host.wait_for(host, "ready")
      local pids = Host.roles()[role]
      assert.truthy(pids, role .. " does not run")
      -- The first is the outermost: the launcher before its template launchers, PID 1
      -- before the exec parents that are copies of it.
      Host.kill(pids[1])
      Host.wait_for(host, "ended lost", 3)
      Host.wait_for(host, "reopened", 10)
      assert.truthy(H.eventually(function() return not host.alive() end))
      assert.truthy(nothing_runs(), "processes are left")
      next_open_works()
    end)
  end

  it("wovyr-janitor leaves running sessions alone", function()
    local host = Host.start(WORKER)
    Host.wait_for(host, "ready")
    Host.kill(Host.roles()["wovyr-janitor"][1])
    H.sleep(0.5)
    assert.is_true(host.alive())
    assert.is_nil(host.output():find("ended", 1, true))
    Host.kill(host.pid)
    assert.truthy(nothing_runs(), "processes are left")
    next_open_works() -- and sweeps what nobody could remove
  end)

  it("supervisor and janitor at once is swept by the next open", function()
    local host = Host.start(WORKER)
    Host.wait_for(host, "ready")
    local roles = Host.roles()
    os.execute(("kill -KILL %d %d %d"):format(host.pid, roles["wovyr-super"][1], roles["wovyr-janitor"][1]))
    assert.truthy(nothing_runs(), "processes are left")
    next_open_works()
  end)

  it("any part at any time leaves nothing", function()
    local seconds = tonumber(os.getenv("WOVYR_CRASH_SECONDS")) or 8
    local deadline = H.now() + seconds
    local names = { "host", "wovyr-super", "wovyr-launcher", "wovyr-janitor", "wovyr-agent" }
    math.randomseed(tonumber(os.getenv("WOVYR_SEED")) or os.time())
    local rounds = 0
    while H.now() < deadline do
      rounds = rounds + 1
      local host = Host.start(CYCLER)
      Host.wait_for(host, "ready")
      H.sleep(math.random() * 0.15)
      local victim = names[math.random(#names)]
      local pids = Host.roles()[victim] or {}
      if victim ~= "host" and #pids > 0 then
        Host.kill(pids[math.random(#pids)])
        H.sleep(math.random() * 0.1)
      end
      Host.kill(host.pid)
      assert.truthy(nothing_runs(), ("round %d: killed %s, processes are left"):format(rounds, victim))
    end
    next_open_works()
  end)
end)

describe("a host", function()
  it("that forked without exec, and died, takes everything with it", function()
    H.skip_unless("luajit", H.vm == "luajit")
    local host = Host.start([[
local ffi = require "ffi"
ffi.cdef "int fork(void); unsigned int sleep(unsigned int);"
]] .. WORKER:gsub('print%("ready"%)', [[
if ffi.C.fork() == 0 then
  -- the copy answers `closed`, and sends nothing
  local out, err = s:exec { "true" }
  print("copy " .. tostring(err and err.code))
  ffi.C.sleep(8)
  os.exit(0)
end
print("ready")]]))
    Host.wait_for(host, "ready")
    Host.wait_for(host, "copy closed")
    Host.kill(host.pid)
    assert.truthy(H.eventually(function() return next(Host.roles()) == nil end, 3), "not by its pidfd")
  end)

  it("whose run directory is full gets a typed error, and the next open works", function()
    H.skip_unless("root")
    os.execute("mkdir -p /run/wovyr && mount -t tmpfs -o size=4k,nr_inodes=1,mode=755 tmpfs /run/wovyr")
    H.at_end(function() os.execute("umount /run/wovyr 2>/dev/null") end)
    local wovyr = require "wovyr"
    local ok, err = pcall(function()
      local rt = wovyr.runtime {}
      local s, why = rt:open { trust = "verified" }
      rt:close()
      assert.is_nil(s)
      assert.truthy(why.code == "limit" or why.code == "unavailable" or why.code == "system", tostring(why))
    end)
    os.execute("umount /run/wovyr")
    assert(ok, err)
    next_open_works()
  end)
end)
