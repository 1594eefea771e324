-- select_spec.lua - which backend serves a request, and what a plan is made of
-- SPDX-License-Identifier: MIT

local policy = require "wovyr.policy"
local select_backend = require "wovyr.policy.select"

local function node(changes, available)
  local guarantees = {}
  for _, name in ipairs(policy.guarantees) do
    guarantees[name] = { state = "enforced", evidence = "seen" }
  end
  for name, state in pairs(changes or {}) do
    guarantees[name] = { state = state, evidence = "why" }
  end
  return { backends = { container = {
    available = available ~= false,
    missing = available == false and "no user namespaces" or nil,
    guarantees = guarantees,
  } } }
end

local function choose(request, floor, trust, changes, available)
  return select_backend.select(request, floor, trust, node(changes, available))
end

describe("select", function()
  it("takes the weakest backend that is strong enough", function()
    local d = assert(choose({}, nil, "verified"))
    assert.equal("container", d.backend)
    assert.equal(3, d.level)
    assert.equal(3, d.required)
    assert.truthy(table.concat(d.reasons, "\n"):find('trust "verified" needs level 3', 1, true))
    -- native would do for code of our own; it is not built, and stronger is allowed
    d = assert(choose({}, nil, "first_party"))
    assert.equal("container", d.backend)
    assert.equal(1, d.required)
    assert.equal("container", assert(choose({ backend = "native" }, "native", "verified")).backend)
  end)

  it("never takes a weaker one: preference, floor and trust all count", function()
    for _, case in ipairs {
      { {}, nil, "untrusted", 4 }, { { backend = "microvm" }, nil, "verified", 5 },
      { {}, "gvisor", "verified", 4 }, { { backend = "gvisor" }, "kubernetes", "first_party", 6 },
    } do
      local d, err = choose(case[1], case[2], case[3])
      assert.is_nil(d)
      assert.equal("unavailable", err.code)
      assert.is_true(err.retryable)
      assert.truthy(err.message:find("level " .. case[4], 1, true))
      for _, c in ipairs(err.candidates) do
        assert.is_true(c.level >= case[4])
        assert.truthy(#c.missing > 0)
      end
    end
  end)

  it("says what is missing, and the choice that would work, word for word", function()
    local _, err = choose({}, nil, "untrusted")
    assert.truthy(err.message:find("gvisor: not built", 1, true))
    assert.truthy(err.hint:find('trust = "verified"', 1, true))
    _, err = choose({}, "gvisor", "untrusted")
    assert.is_nil(err.hint) -- trust would not help
    _, err = choose({}, nil, "untrusted", nil, false)
    assert.is_nil(err.hint)
    _, err = choose({}, nil, "verified", nil, false)
    assert.truthy(err.message:find("container: no user namespaces", 1, true))
  end)

  it("needs the walls that its trust class stands on", function()
    for _, wall in ipairs { "host_files", "network", "ns_ownership", "syscall_filter", "crash_cleanup" } do
      local d, err = choose({}, nil, "verified", { [wall] = "weaker" })
      assert.is_nil(d)
      assert.equal("unavailable", err.code)
      assert.truthy(err.message:find(wall .. " is weaker (why)", 1, true))
    end
    assert.truthy(choose({}, nil, "verified", { uid_range = "absent", pause = "absent" }))
  end)

  it("refuses a requested limit that cannot be enforced", function()
    for limit, guarantee in pairs(select_backend.guarantee_of) do
      for _, state in ipairs { "absent", "weaker" } do
        local d, err = choose({ limits = { limit } }, nil, "verified", { [guarantee] = state })
        assert.is_nil(d)
        assert.equal("unsupported", err.code)
        assert.equal("limits." .. limit, err.field)
        assert.truthy(err.hint:find("best_effort", 1, true))
      end
    end
    assert.truthy(choose({ limits = { "nofile", "memory" } }, nil, "verified"))
  end)

  it("is deterministic and changes nothing", function()
    local n = node()
    local before = policy.canonical(n)
    local one = select_backend.select({ limits = { "memory" } }, nil, "verified", n)
    local two = select_backend.select({ limits = { "memory" } }, nil, "verified", n)
    assert.equal(policy.canonical(one), policy.canonical(two))
    assert.equal(before, policy.canonical(n))
  end)
end)

local function plan(spec, changes, config)
  spec.trust = spec.trust or "verified"
  return policy.plan(spec, config, node(changes))
end

describe("A plan", function()
  it("has the built-in limits where nothing was said", function()
    local p = assert(plan {})
    assert.equal(2 ^ 30, p.limits.memory)
    assert.equal(1, p.limits.cpus)
    assert.equal(256, p.limits.pids)
    assert.equal(512 * 2 ^ 20, p.limits.disk)
    assert.equal(1024, p.limits.nofile)
    assert.equal(120, p.exec.timeout)
    assert.equal(16 * 2 ^ 20, p.exec.output)
    assert.equal(300, p.idle_ttl)
    assert.equal(3600, p.lifetime)
    assert.equal("host", p.template)
    assert.same({ "/bin/bash", "-c" }, p.shell)
    assert.equal("built-in", p.origin["limits.memory"])
  end)

  it("merges records by key, replaces lists, and remembers the origin", function()
    local config = {
      defaults = { limits = { memory = "2G", pids = 64 }, shell = { "/bin/sh", "-c" }, env = { A = "1" } },
      profiles = { big = { limits = { memory = "4G" }, env = { B = "2" } } },
    }
    local p = assert(plan({ profile = "big", limits = { cpus = 2 }, env = { A = "3" } }, nil, config))
    assert.equal(4 * 2 ^ 30, p.limits.memory)
    assert.equal(64, p.limits.pids)
    assert.equal(2, p.limits.cpus)
    assert.same({ "/bin/sh", "-c" }, p.shell)
    assert.same({ A = "3", B = "2" }, p.env)
    assert.equal("profile", p.origin["limits.memory"])
    assert.equal("defaults", p.origin["limits.pids"])
    assert.equal("call", p.origin["limits.cpus"])
    local _, err = plan({ profile = "bgi" }, nil, config)
    assert.equal("not_found", err.code)
    assert.equal("profile", err.field)
  end)

  it("leaves out a built-in limit that cannot be enforced, and refuses one that was asked for", function()
    local p = assert(plan({}, { memory = "absent", cpu = "absent", pids = "weaker" }))
    assert.is_nil(p.limits.memory)
    assert.is_nil(p.limits.cpus)
    assert.equal(256, p.limits.pids)
    assert.same({ "cpus", "memory" }, p.dropped)
    local _, err = plan({ limits = { memory = "1G" } }, { memory = "absent" })
    assert.equal("unsupported", err.code)
    assert.equal("limits.memory", err.field)
    _, err = plan({}, { memory = "absent" }, { defaults = { limits = { memory = "1G" } } })
    assert.equal("unsupported", err.code)
    assert.truthy(plan({ limits = { memory = "1G" }, best_effort = { "memory" } }, { memory = "absent" }))
    _, err = plan { best_effort = { "memroy" } }
    assert.equal("best_effort", err.field)
  end)

  it("fits the store into the memory", function()
    local _, err = plan { limits = { memory = "256M", disk = "1G" } }
    assert.equal("invalid", err.code)
    assert.equal("limits.disk", err.field)
    assert.truthy(err.hint:find("1088M", 1, true))
    _, err = plan { limits = { disk = "2G" } }
    assert.equal("limits.disk", err.field)
    assert.equal(192 * 2 ^ 20, assert(plan { limits = { memory = "256M" } }).limits.disk)
    assert.equal(16 * 2 ^ 20, assert(plan { limits = { memory = "64M" } }).limits.disk)
    assert.equal(192 * 2 ^ 20, assert(plan { limits = { memory = "256M", disk = "192M" } }).limits.disk)
    _, err = plan { limits = { memory = "1M" } }
    assert.equal("limits.memory", err.field)
  end)

  it("refuses what is not built, rather than ignoring it", function()
    for field, spec in pairs {
      egress = { egress = "public" }, mounts = { mounts = { { host = "/a", path = "/b" } } },
      secrets = { secrets = { "npm" } }, on_expire = { on_expire = "pause" },
    } do
      local _, err = plan(spec)
      assert.equal("unsupported", err.code)
      assert.equal(field, err.field)
    end
  end)

  it("refuses names that are no names", function()
    for _, name in ipairs { "../../etc", "/etc", "a b", "", "a\0b" } do
      local _, err = plan { template = name }
      assert.equal("invalid", err.code)
      assert.equal("template", err.field)
    end
    local _, err = plan { env = { A = "x\0y" } }
    assert.equal("env", err.field)
  end)

  it("has one canonical form in either VM", function()
    local a = policy.canonical(assert(plan { limits = { memory = "2G" }, env = { A = "1", B = "2" } }).spec)
    local b = policy.canonical(assert(plan { env = { B = "2", A = "1" }, limits = { memory = 2 ^ 31 } }).spec)
    assert.equal(a, b)
    assert.truthy(a:find('["memory"]=2147483648,', 1, true))
  end)

  it("explains itself", function()
    local text = policy.explain(assert(plan({ limits = { memory = "256M" } }, { cpu = "absent" })))
    for _, part in ipairs {
      "container (level 3)", "because trust", "memory   256M (call)", "cpus     not enforced here",
      "timeout 120 s, output 16M", "host_files", "crash_cleanup", "absent",
    } do
      assert.truthy(text:find(part, 1, true), part .. "\n" .. text)
    end
  end)
end)
