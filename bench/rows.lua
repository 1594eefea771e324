-- rows.lua - what is measured: ours, the peer, and the target between them

local wovyr = require "wovyr"
local now = require("wovyr.core").now

local M = {}

local PEER = "build/bench/peer"
local SPEC = { trust = "verified", limits = { memory = "2G", disk = "1536M", cpus = 2, pids = 512 },
  best_effort = { "memory", "cpus", "pids" }, idle_ttl = "1h" }

local function us(fn)
  local before = now()
  fn()
  return (now() - before) * 1e6
end

-- One sample of the peer program, timed by itself: its own start does not count. With the
-- clean environment that a session has: PYTHONUNBUFFERED, say, changes what is compared.
local function peer(...)
  local words = {}
  for i, word in ipairs { ... } do words[i] = "'" .. word:gsub("'", "'\\''") .. "'" end
  local command = ('env -i PATH="$PATH" %s %s 2>/dev/null'):format(PEER, table.concat(words, " "))
  return function()
    local pipe = assert(io.popen(command))
    local line = pipe:read("a") or ""
    pipe:close()
    return tonumber(line:match("^[%d.]+")) or error(command .. " failed: " .. line)
  end
end

--- Seconds that all CPUs were busy since boot: what a cycle costs wherever it is spent.
function M.cpu_seconds()
  local file = assert(io.open("/proc/stat"))
  local line = file:read("l")
  file:close()
  local user, nice, system, _, _, irq, soft = line:match(
    "^cpu%s+(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)")
  return (user + nice + system + irq + soft) / 100
end

local shared
local function session()
  shared = shared or assert(wovyr.open(SPEC))
  return shared
end

local function exec_ok(s, argv, opts)
  local out = assert(s:exec(argv, opts))
  if not out.ok then error(table.concat(argv, " ") .. ": " .. out:describe() .. out.stderr) end
  return out
end

local function have(program)
  local pipe = io.popen("command -v " .. program)
  local path = pipe:read("l")
  pipe:close()
  return path
end

local function open_rows(add)
  local spec = { trust = "verified" }
  local function cycle()
    return us(function()
      local s = assert(wovyr.open(spec))
      exec_ok(s, { "/bin/true" })
      assert(s:kill())
    end)
  end
  if have("bwrap") then
    add { name = "open + true + close", peer_name = "bwrap", target = 0.6, sample = cycle,
      peer_sample = peer("spawn", "bwrap", "--unshare-all", "--ro-bind", "/", "/",
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true") }
  end
  local last
  add { name = "open to first answer", peer_name = "posix_spawn", target = 1.5,
    sample = function()
      if last then last:kill() end
      os.execute("sleep 0.02") -- the pool refills off the path: that is what "warm" means
      return us(function()
        last = assert(wovyr.open(spec))
        assert(last.files:exists("/"))
      end)
    end,
    peer_sample = peer("spawn", "/bin/true"), done = function() last:kill() end }
  add { name = "sustained open + true + close", measure = function()
    local seconds = tonumber(os.getenv("SUSTAIN")) or 10
    local began, n, cpu = now(), 0, M.cpu_seconds()
    while now() - began < seconds do
      cycle()
      n = n + 1
    end
    return ("%.0f cycles/s over %d s; %.2f ms of CPU a cycle, everything on the machine"):format(
      n / seconds, seconds, (M.cpu_seconds() - cpu) / n * 1e3)
  end }
end

local function runc_rows(add)
  if not have("runc") then return end
  local dir = "build/bench/bundle"
  os.execute("mkdir -p " .. dir .. "/rootfs && cd " .. dir .. " && rm -f config.json && runc spec")
  local file = assert(io.open(dir .. "/config.json"))
  local config = file:read("a")
  file:close()
  config = config:gsub('"terminal": true', '"terminal": false'):gsub('"sh"', '"/bin/true"')
    :gsub('"path": "rootfs"', '"path": "/"')
  file = assert(io.open(dir .. "/config.json", "w"))
  file:write(config)
  file:close()
  add { name = "open + true + close", peer_name = "runc run", runs = 20,
    sample = function()
      return us(function()
        local s = assert(wovyr.open { trust = "verified" })
        exec_ok(s, { "/bin/true" })
        s:kill()
      end)
    end,
    peer_sample = peer("spawn", "runc", "run", "-b", dir, "wovyr-bench") }
end

local function exec_rows(add)
  add { name = "exec of /bin/true", peer_name = "posix_spawn", target = 1.3, runs = 101,
    sample = function() return us(function() exec_ok(session(), { "/bin/true" }) end) end,
    peer_sample = peer("spawn", "/bin/true") }
  add { name = "exec of /bin/true, 64 at once", measure = function()
    local times, jobs = {}, {}
    for i = 1, 64 do
      jobs[i] = function()
        for _ = 1, 4 do
          times[#times + 1] = us(function() exec_ok(session(), { "/bin/true" }) end)
        end
      end
    end
    assert(wovyr.all(jobs))
    local q = require("measure").quartiles(times)
    return ("median %.1f ms, p99 %.1f ms"):format(q.median / 1000, q.p99 / 1000)
  end }
end

local function stdout_rows(add)
  local big = "build/bench/big"
  os.execute("test -s " .. big .. " || head -c 1G /dev/urandom > " .. big)
  local programs = {
    { "head -c 512M", { "head", "-c", "512M", "/dev/zero" } },
    { "find /usr/lib", { "find", "/usr/lib", "/usr/include", "-printf", "%p %s %m\\n" } },
    -- By path: another python3 that is first in this user's PATH is not what runs inside.
    { "python lines", { "/usr/bin/python3", "-c",
      "for i in range(300000): print('line', i, 'of the output')" } },
  }
  for _, p in ipairs(programs) do
    add { name = "stdout of " .. p[1], peer_name = "plain pipe", target = 1.25, runs = 20,
      sample = function()
        return us(function() exec_ok(session(), p[2], { timeout = "5m" }) end)
      end,
      peer_sample = peer("pipe", table.unpack(p[2])) }
  end
  local copied
  add { name = "stdout of cat, 1 GiB", peer_name = "plain pipe", target = 1.25, runs = 20,
    sample = function()
      copied = copied or session().files:upload(big, "big") or error("upload")
      return us(function() exec_ok(session(), { "cat", "big" }) end)
    end,
    peer_sample = peer("pipe", "cat", big) }
  add { name = "read a 1 GiB file", peer_name = "read()", target = 1.25, runs = 20,
    sample = function()
      return us(function()
        local total = 0
        for data in assert(session().files:reader("big")) do total = total + #data end
        assert(total == 2 ^ 30, "short read")
      end)
    end,
    peer_sample = peer("read", big) }
end

local function available()
  for line in io.lines("/proc/meminfo") do
    local kib = line:match("^MemAvailable:%s+(%d+)")
    if kib then return tonumber(kib) end
  end
end

local function memory_rows(add)
  add { name = "memory of an idle session", measure = function()
    local n, open = 50, {}
    open[1] = assert(wovyr.open { trust = "verified" })
    os.execute("sleep 1")
    local before = available()
    for i = 2, n + 1 do open[i] = assert(wovyr.open { trust = "verified" }) end
    os.execute("sleep 1")
    local each = (before - available()) / n
    for _, s in ipairs(open) do s:kill() end
    return ("%.0f KiB of MemAvailable each, %d open (goal: 614)"):format(each, n)
  end }
end

--- All rows that exist so far, in the order of docs/architecture.md.
function M.list()
  local list = {}
  local function add(row) list[#list + 1] = row end
  open_rows(add)
  runc_rows(add)
  exec_rows(add)
  stdout_rows(add)
  memory_rows(add)
  return list
end

function M.finish()
  if shared then shared:kill() end
end

return M
