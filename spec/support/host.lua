-- host.lua - a host process of its own, to be killed; and who plays which role right now

local H = require "spec.helper"

local M = {}

-- Start of the spec's first host, in clock ticks since boot: what is older is not its.
local epoch = 0

local function started(stat)
  local fields = {}
  for field in (stat or ""):match("%)(.*)$"):gmatch("%S+") do fields[#fields + 1] = field end
  return tonumber(fields[20])
end

local function slurp(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then file:close() end
  return text
end

--- Run Lua source as a process of its own, in the background; its output goes to a file.
--- -> { pid, output() -> text, alive() -> boolean }
function M.start(source)
  local dir = H.tmpdir()
  H.write(dir .. "/host.lua", source)
  local _, pid = H.sh(("setsid %s %s/host.lua > %s/out 2>&1 & echo $!"):format(H.vm, dir, dir))
  pid = tonumber(pid)
  if epoch == 0 then epoch = started(slurp("/proc/" .. pid .. "/stat")) or 0 end
  H.at_end(function() -- also when the spec fails half-way
    M.kill("-- -" .. pid) -- and what it forked
    epoch = 0
  end)
  local host = { pid = pid }
  function host.output()
    return H.read(dir .. "/out") or ""
  end
  function host.alive()
    local status = slurp("/proc/" .. pid .. "/status")
    return status ~= nil and not status:find("\nState:%s*[ZX]")
  end
  return host
end

--- Wait until the host has printed `word`.
function M.wait_for(host, word, seconds)
  local seen = H.eventually(function()
    return host.output():find(word, 1, true) or not host.alive()
  end, seconds or 10)
  if not seen or not host.output():find(word, 1, true) then
    error("the host did not say " .. word .. ": " .. host.output(), 2)
  end
end

--- Live processes of this spec by role: { ["wovyr-super"] = { pid... }, ... }. A zombie is not
--- alive: where ours is a child of init, it is init's to collect.
function M.roles()
  local roles = {}
  local list = io.popen("grep -H . /proc/[0-9]*/stat 2>/dev/null")
  for line in list:lines() do
    local pid, name, state = line:match("^/proc/(%d+)/stat:%d+ %((wovyr%-.*)%) (%a)")
    -- Ours are started from memory by a plain name; one by hand has a path.
    if pid and state ~= "Z" and state ~= "X" and started(line) >= epoch
      and (slurp("/proc/" .. pid .. "/cmdline") or ""):find("^wovyr%-") then
      roles[name] = roles[name] or {}
      table.insert(roles[name], tonumber(pid))
    end
  end
  list:close()
  for _, pids in pairs(roles) do table.sort(pids) end
  return roles
end

function M.kill(pid)
  os.execute("kill -KILL " .. pid .. " 2>/dev/null")
end

return M
