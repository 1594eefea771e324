-- One table: input -> error code and field. Nothing else may come.

local S = require "spec.support.session"

local long = ("x"):rep(4096)

-- { what, call -> value, err (or raises), code, field }
local cases = {
  { "a missing program", function(s) return s:exec { "no-such-program" } end, "not_found", "cmd" },
  { "a missing path as program", function(s) return s:exec { "/no/such/program" } end, "not_found", "cmd" },
  { "a directory as program", function(s) return s:exec { "/usr" } end, "denied", "cmd" },
  { "a file that is not executable", function(s) return s:exec { "/etc/passwd" } end, "denied", "cmd" },
  { "a bad interpreter", function(s)
    assert(s.files:write("bad", "#!/no/such/interpreter\n", { mode = "0755" }))
    return s:exec { "./bad" }
  end, "not_found", "cmd" },
  { "something that is no program", function(s)
    assert(s.files:write("noexec", "\127ELFnonsense", { mode = "0755" }))
    return s:exec { "./noexec" }
  end, "invalid", "cmd" },
  { "2 MiB of argv", function(s) return s:exec { "true", ("x"):rep(2 ^ 21) } end, "invalid", "cmd" },
  { "one argument of 200 KiB", function(s) return s:exec { "true", ("x"):rep(200 * 1024) } end, "invalid", "cmd" },
  { "a NUL in the name", function(s) return s:exec { "tr\0ue" } end, "invalid", "cmd" },
  { "a NUL in an argument", function(s) return s:exec { "true", "a\0b" } end, "invalid", "cmd" },
  { "a NUL in the environment", function(s) return s:exec({ "true" }, { env = { A = "a\0b" } }) end,
    "invalid", "env" },
  { "an environment name with =", function(s) return s:exec({ "true" }, { env = { ["A=B"] = "c" } }) end,
    "invalid", "env" },
  { "an empty argv", function(s) return s:exec {} end, "invalid", "cmd" },
  { "an empty program name", function(s) return s:exec { "" } end, "invalid", "cmd" },
  { "a missing cwd", function(s) return s:exec({ "true" }, { cwd = "/no/such" }) end, "not_found", "cwd" },
  { "a file as cwd", function(s) return s:exec({ "true" }, { cwd = "/etc/passwd" }) end, "invalid", "cwd" },
  { "an unknown user", function(s) return s:exec({ "true" }, { user = "nobody-here" }) end, "not_found", "user" },
  { "a 4096-byte path", function(s) return s.files:read("/" .. long) end, "invalid", "path" },
  { "a NUL in a path", function(s) return s.files:read("a\0b") end, "invalid", "path" },
  { "a 256-byte name", function(s) return s.files:write(("n"):rep(256), "x") end, "invalid", "path" },
  { "an empty path", function(s) return s.files:read("") end, "invalid", "path" },
  { "a missing file", function(s) return s.files:read("none") end, "not_found", "path" },
  { "a directory read as a file", function(s) return s.files:read("/usr") end, "invalid", "path" },
  { "a fifo read as a file", function(s)
    S.run(s, "mkfifo pipe")
    return s.files:read("pipe")
  end, "invalid", "path" },
  { "a read-only place", function(s) return s.files:write("/usr/x", "x", { user = "root" }) end, "denied", "path" },
  { "another's file", function(s)
    S.run(s, "echo > /tmp/private; chmod 600 /tmp/private", { user = "root" })
    return s.files:read("/tmp/private")
  end, "denied", "path" },
  { "a file over max", function(s)
    assert(s.files:write("big", ("x"):rep(2000)))
    return s.files:read("big", { max = 1000 })
  end, "limit", "max" },
  { "an existing directory", function(s) return s.files:mkdir("/tmp") end, "exists", "path" },
  { "a full directory removed", function(s)
    S.run(s, "mkdir full && touch full/x")
    return s.files:remove("full")
  end, "conflict", "path" },
  { "a version that is not there", function(s)
    assert(s.files:write("v", "1"))
    return s.files:write("v", "2", { if_version = "other" })
  end, "conflict", "if_version" },
  { "a file that should be absent", function(s) return s.files:write("v", "2", { if_version = false }) end,
    "conflict", "if_version" },
  { "an unknown process", function(s) return s:attach("p99") end, "not_found", "id" },
  { "a wrong option type", function(s) return s:exec({ "true" }, { timeout = {} }) end, "invalid", "timeout" },
  { "a bad duration", function(s) return s:exec({ "true" }, { timeout = "5 parsecs" }) end, "invalid", "timeout" },
  { "an unknown option", function(s) return s:exec({ "true" }, { timout = 1 }) end, "invalid", "timout" },
  { "a wrong command type", function(s) return s:exec(42) end, "invalid", "cmd" },
  { "a bad mode", function(s) return s.files:write("m", "", { mode = 420 }) end, "invalid", "mode" },
  { "a write to an ended process", function(s)
    local p = assert(s:start({ "true" }, { stdin = true }))
    assert(p:wait { timeout = 10 })
    return p:write("x")
  end, "closed" },
  { "a closed session", function(s)
    s:close()
    return s:exec { "true" }
  end, "closed" },
  { "a file of a closed session", function(s) return s.files:stat("x") end, "closed" },
}

local function outcome(fn, ...)
  local ok, value, err = pcall(fn, ...)
  if not ok then return value end -- misuse is raised, with the same kind of object
  return value == nil and err or { code = "no error: " .. tostring(value) }
end

describe("an error", function()
  it("is typed and names its field, for every bad input", S.session(function(s)
    for _, case in ipairs(cases) do
      local what, call, code, field = case[1], case[2], case[3], case[4]
      local err = outcome(call, s)
      assert.equal(code, type(err) == "table" and err.code or tostring(err), what .. ": " .. tostring(err))
      assert.equal(field, err.field, what)
      assert.truthy(#tostring(err) > 0 and #tostring(err) < 1000, what)
    end
  end))

  local specs = {
    { "an unknown option", { trust = "verified", limit = {} }, "invalid", "limit" },
    { "an unknown limit", { trust = "verified", limits = { memroy = "1G" } }, "invalid", "limits.memroy" },
    { "a wrong type", { trust = "verified", limits = { memory = {} } }, "invalid", "limits.memory" },
    { "a bad size", { trust = "verified", limits = { memory = "1Q" } }, "invalid", "limits.memory" },
    { "an unknown trust", { trust = "total" }, "invalid", "trust" },
    { "a disk that does not fit its memory",
      { trust = "verified", limits = { memory = "256M", disk = "1G" } }, "invalid", "limits.disk" },
    { "an unknown template", { trust = "verified", template = "none" }, "not_found", "template" },
    { "a template path", { trust = "verified", template = "../../etc" }, "invalid", "template" },
    { "the default trust, where nothing is strong enough", {}, "unavailable" },
    { "a backend that is not built", { trust = "verified", backend = "microvm" }, "unavailable" },
    { "a floor that nothing here reaches", { trust = "verified", floor = "microvm" }, "unavailable" },
  }
  for _, case in ipairs(specs) do
    it("of a spec: " .. case[1], S.runtime(function(rt)
      local err = outcome(rt.open, rt, case[2])
      assert.equal(case[3], err.code, tostring(err))
      assert.equal(case[4], err.field)
    end))
  end

  it("of the default trust prints the choice that would work", S.runtime(function(rt)
    local _, err = rt:open {}
    assert.truthy(err.hint:find('trust = "verified"', 1, true), err.hint)
  end))

  it("suggests the nearest name", S.runtime(function(rt)
    local err = outcome(rt.open, rt, { trust = "verified", limits = { memroy = "1G" } })
    assert.truthy(tostring(err):find("memory", 1, true))
  end))
end)
