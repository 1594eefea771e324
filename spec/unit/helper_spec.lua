-- helper_spec.lua - the census notices one leaked item of each kind, and a leak fails the spec
-- SPDX-License-Identifier: MIT

local H = require "spec.helper"
local census = H.census

-- What is new while `leak` is in force, of the given kind and matching `pattern`; afterwards it
-- has to be gone again.
local function noticed(kind, pattern, leak, mend)
  local before = census.take()
  leak()
  local new = H.eventually(function()
    for _, item in ipairs(census.diff(before, census.take())) do
      if item:find("^" .. kind .. " ") and item:find(pattern) then
        return item
      end
    end
  end, 3)
  mend()
  assert(new, "the census did not notice the " .. kind)
  assert(H.eventually(function()
    for _, item in ipairs(census.diff(before, census.take())) do
      if item == new then
        return false
      end
    end
    return true
  end, 3), new .. " did not go away")
end

-- Starts a shell command in the background, whose last act is to become a sleep; -> its pid.
local function background(command)
  local _, pid = H.sh("unset LD_PRELOAD; " .. command .. " >/dev/null 2>&1 & echo $!")
  return pid:match("%d+")
end

local function kill(pid)
  H.sh("kill -9 " .. pid)
end

describe("The census", function()
  it("is the same twice", function()
    local first = census.take()
    local own = function(item) return item:find("^descriptor") or item:find("^mount") end
    for _, item in ipairs(census.diff(first, census.take())) do
      assert(not own(item), item)
    end
  end)

  it("notices a descriptor", function()
    local file
    noticed("descriptor", "/etc/passwd", function() file = io.open("/etc/passwd") end,
      function() file:close() end)
  end)

  it("notices a child", function()
    local pipe
    noticed("process", "cat", function() pipe = io.popen("exec cat", "w") end,
      function() pipe:close() end)
  end)

  it("notices a process called wovyr-* that is nobody's child", function()
    local dir, pid = H.tmpdir(), nil
    H.sh("ln -s /bin/sleep " .. dir .. "/wovyr-supervisor")
    noticed("process", "wovyr%-supervisor", function()
      pid = background("exec setsid " .. dir .. "/wovyr-supervisor 77")
    end, function() kill(pid) end)
  end)

  it("notices a process that renamed itself by argv only", function()
    local pid
    noticed("process", "wovyr%-agent", function()
      pid = background("exec bash -c 'exec -a wovyr-agent sleep 77'")
    end, function() kill(pid) end)
  end)

  it("notices a process in another pid and user namespace, and the namespaces", function()
    H.skip_unless "userns"
    for _, kind in ipairs { "process", "namespace" } do
      local pid
      noticed(kind, kind == "process" and "sleep" or "user:", function()
        pid = background("exec unshare -Urpf --kill-child sleep 77")
      end, function() kill(pid) end)
    end
  end)

  it("notices a mount", function()
    H.skip_unless "root"
    local dir = H.tmpdir()
    noticed("mount", dir, function() H.sh("mount -t tmpfs spec " .. dir) end,
      function() H.sh("umount " .. dir) end)
  end)

  it("notices a cgroup", function()
    H.skip_unless "cgroups"
    local _, top = H.sh "for d in /sys/fs/cgroup/pids /sys/fs/cgroup; do test -w $d && echo $d && break; done"
    local path = top:match("[^\n]+") .. "/wovyr/spec/s1"
    noticed("cgroup", "/wovyr/spec/s1", function() H.sh("mkdir -p " .. path) end,
      function() H.sh("rmdir " .. path .. "; rmdir " .. path:match("^(.*)/s1$")) end)
  end)

  it("notices a file in a run directory, /tmp, /dev/shm", function()
    for _, path in ipairs { "/tmp/wovyr-spec-file", "/tmp/wovyr-4242/owner/lock", "/dev/shm/wovyr-x" } do
      noticed("file", path:gsub("%-", "%%-"), function()
        H.sh("mkdir -p " .. path:match("^(.*)/") .. "; : > " .. path)
      end, function() H.sh("rm " .. path .. "; rm -rf /tmp/wovyr-4242") end)
    end
  end)

  it("notices a lease of a uid range", function()
    noticed("lease", "/uid/4093", function() H.sh "mkdir -p /tmp/wovyr-4242/uid; : > /tmp/wovyr-4242/uid/4093" end,
      function() H.sh "rm -rf /tmp/wovyr-4242" end)
  end)

  it("forgives a replacement, not growth", function()
    local before, after = census.take(), census.take()
    before.cgroup = { ["/c/wovyr/o/s1"] = "/c/wovyr/o/sN" }
    after.cgroup = { ["/c/wovyr/o/s2"] = "/c/wovyr/o/sN" }
    assert.equal(0, #census.diff({ process = {}, namespace = {}, mount = {}, cgroup = before.cgroup,
      descriptor = {}, file = {}, lease = {} }, { process = {}, namespace = {}, mount = {},
      cgroup = after.cgroup, descriptor = {}, file = {}, lease = {} }))
    after.cgroup["/c/wovyr/o/s3"] = "/c/wovyr/o/sN"
    assert.equal(1, #census.diff({ process = {}, namespace = {}, mount = {}, cgroup = before.cgroup,
      descriptor = {}, file = {}, lease = {} }, { process = {}, namespace = {}, mount = {},
      cgroup = after.cgroup, descriptor = {}, file = {}, lease = {} }))
  end)
end)

describe("The helper", function()
  -- Runs a spec of its own under busted. -> exit status, output
  local function suite(body)
    local path = H.tmpdir() .. "/inner_spec.lua"
    H.write(path, "local H = require 'spec.helper'\nit('inner', function()\n" .. body .. "\nend)\n")
    return H.sh("WOVYR_SPEC_SETTLE=0.1 WOVYR_SPEC_TOTALS= WOVYR_SPEC_SKIPS= exec " .. H.vm
      .. " /usr/bin/busted -o spec/report.lua " .. path)
  end

  it("passes a spec that leaves nothing", function()
    local status, out = suite("H.sh 'true'; H.tmpdir(); local f = io.open('/etc/passwd'); f = nil")
    assert.equal(0, status, out)
    assert.matches("1 passed", out)
  end)

  it("fails a spec that leaves something, and says what", function()
    local status, out = suite("kept = io.open('/etc/passwd'); rawset(_G, 'kept', kept)")
    assert.is_true(status ~= 0, out)
    assert.matches("left behind by \"inner\":%s+descriptor %d+ %-> /etc/passwd", out)
  end)

  it("skips only by names in spec/pending.txt", function()
    local status, out = suite("H.skip_unless 'no-such-condition'")
    assert.is_true(status ~= 0)
    assert.matches("not in spec/pending.txt", out, 1, true)
    status, out = suite("H.skip_unless('root', false)")
    assert.equal(0, status, out)
    assert.matches("1 skipped", out)
  end)

  it("runs shell commands and tells their status", function()
    local status, out = H.sh "echo out; echo err >&2; exit 7"
    assert.equal(7, status)
    assert.equal("out\nerr\n", out)
  end)
end)
