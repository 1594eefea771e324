-- core_spec.lua - wovyr.core by itself: fields, misuse, collectors, links without a guest
--
-- A shell script plays the supervisor: it keeps what it is sent, and sends what it is told.
-- SPDX-License-Identifier: MIT

local H = require "spec.helper"
local lfs = require "lfs"
local core = require "wovyr.core"

-- ---- frames by hand

local function u32(n)
  return string.char(n % 256, math.floor(n / 2 ^ 8) % 256, math.floor(n / 2 ^ 16) % 256,
    math.floor(n / 2 ^ 24) % 256)
end

local function u64(n)
  return u32(n % 2 ^ 32) .. u32(math.floor(n / 2 ^ 32))
end

local function str(s)
  return u32(#s) .. s
end

local function strv(list)
  local packed = {}
  for i, s in ipairs(list) do
    packed[i] = str(s)
  end
  packed = table.concat(packed)
  return u32(#packed) .. u32(#list) .. packed
end

local function frame(type, stream, payload)
  return u32(#payload + type * 2 ^ 24) .. u32(stream) .. payload
end

local TYPE = { HELLO = 0x01, PING = 0x02, ERROR = 0x07, NODE = 0x40, OPEN = 0x41, OPENED = 0x42,
  CLOSE = 0x47, SESSION_END = 0x48, SESSIONS = 0x4c, SESSION = 0x4d, USAGE = 0x4a, USED = 0x4b }

local HELLO = frame(TYPE.HELLO, 0, u32(1) .. u64(0) .. str("abc"))

local every_byte = {}
for i = 0, 255 do
  every_byte[#every_byte + 1] = string.char(i)
end
every_byte = table.concat(every_byte)

--- A link to a script that waits for `after` bytes, sends `answer` and keeps what came.
local function stand_in(answer, after)
  local dir = H.tmpdir()
  H.write(dir .. "/answer", answer)
  H.write(dir .. "/supervisor", ([[#!/bin/sh
exec 2>/dev/null
head -c %d <&3 >%s/got
cat %s/answer >&3
exec cat <&3 >>%s/got
]]):format(after or 0, dir, dir, dir))
  H.sh("chmod 700 " .. dir .. "/supervisor")
  local link = assert(core.start { path = dir .. "/supervisor" })
  return link, function(n)
    return H.eventually(function()
      local bytes = H.read(dir .. "/got") or ""
      return #bytes >= n and bytes
    end)
  end
end

--- The next message of a link, whatever it is.
local function take(link)
  local hub = assert(core.hub())
  assert(hub:add(link))
  local deadline = core.now() + 10
  while core.now() < deadline do
    local stream, name, fields, fd = link:next()
    if stream or name then
      hub:close()
      return stream, name, fields, fd
    end
    hub:wait(1)
  end
  error "no message"
end

local OUR_HELLO = 8 + 4 + 8 + 4 + #core.BUILD

describe("the module", function()
  it("names itself", function()
    assert.is_true(core.BUILD:find("^%w+$") ~= nil)
    assert.is_string(core.VERSION)
    assert.equal("not_found", core.codes[4])
    assert.equal(20, core.codes.again)
  end)

  it("has a clock that goes forward", function()
    local before = core.now()
    H.sleep(0.02)
    local passed = core.now() - before
    assert.is_true(passed > 0.01 and passed < 5)
  end)

  it("hides its metatables", function()
    for _, object in ipairs { core.collector(1), core.hub(), (core.channel()) } do
      assert.is_false(getmetatable(object))
      assert.is_true(tostring(object):find("^wovyr%.%u%l+: ") ~= nil)
      object:close()
    end
    local link, fd = core.channel()
    assert.has_error(function() link.close(fd) end)
    assert.has_error(function() link.close(io.stdout) end)
    assert.has_error(function() link.close({}) end)
    link:close()
    fd:close()
  end)

  it("gives errors the metatable it is told", function()
    local mt = { __tostring = function(e) return "E:" .. e.code end }
    local old
    do
      local _, e = core.start { path = "/nonexistent" }
      old = getmetatable(e)
    end
    core.error_metatable(mt)
    local link, err = core.start { path = "/nonexistent" }
    core.error_metatable(old or {})
    assert.is_nil(link)
    assert.equal("E:not_found", tostring(err))
    assert.equal(2, err.errno)
    assert.equal("spawn", err.op)
    assert.is_true(err.message:find("/nonexistent", 1, true) ~= nil)
  end)
end)

describe("a link", function()
  it("greets with its version and its build", function()
    local link, got = stand_in(HELLO)
    local stream, name, fields = take(link)
    assert.equal(0, stream)
    assert.equal("HELLO", name)
    assert.same({ version = 1, caps = 0, build = "abc" }, fields)
    local hello = frame(TYPE.HELLO, 0, u32(1) .. u64(0) .. str(core.BUILD))
    assert.equal(OUR_HELLO, #hello)
    assert.equal(hello, got(#hello))
    link:close()
  end)

  it("encodes every kind of field", function()
    local link, got = stand_in("")
    local fields = {
      flags = 1, template = every_byte, memory = 2 ^ 40 + 1, cpu_milli = 2 ^ 32 - 1, pids = 3,
      disk = 2 ^ 53, nofile = 0, metadata = "",
    }
    local stream = assert(link:open("OPEN", fields))
    local expected = frame(TYPE.OPEN, stream, u32(1) .. str(every_byte) .. u64(2 ^ 40 + 1)
      .. u32(2 ^ 32 - 1) .. u32(3) .. u64(2 ^ 53) .. u32(0) .. u64(0) .. u64(0) .. str(""))
    assert.is_true(link:send(0, "PING", { token = 77 }))
    assert.is_true(link:send(stream, "CLOSE", { reason = 3, grace_ms = 5 }))
    expected = expected .. frame(TYPE.PING, 0, u64(77))
      .. frame(TYPE.CLOSE, stream, string.char(3) .. u32(5))
    assert.equal(expected, got(OUR_HELLO + #expected):sub(OUR_HELLO + 1))
    link:close()
  end)

  it("encodes lists", function()
    local link, peer = core.channel()
    -- Lists go to guests only: what can be seen here is that all of these are taken.
    for _, argv in ipairs { {}, { "" }, { every_byte, "", "x" }, { ("y"):rep(60000) } } do
      assert.is_number(link:open("START", { argv = argv, env = { "A=B" }, cwd = "/" }))
    end
    link:close()
    peer:close()
  end)

  it("decodes every kind of field", function()
    local used = frame(TYPE.USED, 1, u64(1) .. u64(2 ^ 53) .. u64(0) .. u64(4) .. u64(5) .. u64(6)
      .. u64(7) .. u64(8))
    local opened = frame(TYPE.OPENED, 2, str("id") .. u64(1) .. u64(2)
      .. strv { "a=enforced=x", "", every_byte })
    local ended = frame(TYPE.SESSION_END, 2, string.char(5, 3) .. u64(9) .. str("gone"))
    local failed = frame(TYPE.ERROR, 3, string.char(4) .. u32(2) .. str("open") .. str("template")
      .. str("") .. str("no such"))
    local link = stand_in(HELLO .. used .. opened .. ended .. failed, OUR_HELLO + 13 + 2 * 64)
    assert.equal(1, link:open("USAGE", { id = "x" }))
    assert.equal(2, link:open("OPEN", {}))
    assert.equal(3, link:open("OPEN"))
    assert.equal("HELLO", (select(2, take(link))))
    local stream, name, fields = take(link)
    assert.equal(1, stream)
    assert.equal("USED", name)
    assert.same({ cpu_us = 1, memory = 2 ^ 53, memory_peak = 0, pids = 4, oom_kills = 5,
      pids_hits = 6, throttled_us = 7, memory_hits = 8 }, fields)
    stream, name, fields = take(link)
    assert.equal(2, stream)
    assert.equal("OPENED", name)
    assert.same({ id = "id", started_ms = 1, ends_ms = 2,
      guarantees = { "a=enforced=x", "", every_byte } }, fields)
    stream, name, fields = take(link)
    assert.equal(2, stream)
    assert.equal("SESSION_END", name)
    assert.same({ state = 5, reason = 3, oom_kills = 9, detail = "gone" }, fields)
    stream, name, fields = take(link)
    assert.equal(3, stream)
    assert.equal("ERROR", name)
    assert.same({ code = 4, sys = 2, op = "open", field = "template", reason = "",
      message = "no such" }, fields)
    assert.is_nil((link:next()))
    link:close()
  end)

  it("tells a loss after what came before it", function()
    local dir = H.tmpdir()
    H.write(dir .. "/answer", HELLO .. frame(TYPE.NODE, 0, strv { "a=yes" }))
    H.write(dir .. "/supervisor", "#!/bin/sh\nexec cat " .. dir .. "/answer >&3\n")
    H.sh("chmod 700 " .. dir .. "/supervisor")
    local link = assert(core.start { path = dir .. "/supervisor" })
    H.sleep(0.2)
    link:step()
    assert.equal("HELLO", (select(2, take(link))))
    local _, name, fields = take(link)
    assert.equal("NODE", name)
    assert.same({ "a=yes" }, fields.facts)
    local stream, err = take(link)
    assert.is_nil(stream)
    assert.equal("lost", err.code)
    assert.same({ true, "lost" }, { link:closed() })
    assert.equal("lost", (select(2, link:open("SESSIONS", {}))).code)
    assert.equal("lost", (select(2, link:send(0, "PING", {}))).code)
    link:close()
    assert.equal("closed", (select(2, link:next())).code)
  end)

  it("ends on what breaks the protocol", function()
    for _, bytes in ipairs {
      frame(0x7e, 0, ""), -- no such message
      HELLO .. frame(TYPE.PING, 0, u64(1)), -- not a supervisor's to say
      HELLO .. frame(TYPE.USED, 1, ("x"):rep(64)), -- on no stream
      frame(TYPE.HELLO, 0, u32(1)), -- cut short
      frame(TYPE.HELLO, 0, u32(2) .. u64(0) .. str("")), -- another version
      HELLO .. frame(TYPE.NODE, 0, u32(4) .. u32(1) .. u32(9)), -- a list longer than itself
    } do
      local link = stand_in(bytes)
      local stream, name
      repeat
        stream, name = take(link)
      until not stream
      assert.equal("protocol", name.code)
      assert.same({ true, "protocol" }, { link:closed() })
      link:close()
    end
  end)

  it("is closed after close, for every call", function()
    local link, peer = core.channel()
    local stream = assert(link:open("START", { argv = { "x" } }))
    assert.same({ false }, { link:closed() })
    assert.is_number(link:pollfd())
    assert.equal("r", link:events())
    assert.is_nil(link:timeout())
    link:close()
    link:close()
    for _, result in ipairs {
      { link:open("START", {}) }, { link:send(stream, "CANCEL", {}) }, { link:may_send(stream) },
      { link:consumed(stream, 1) }, { link:next() }, { link:collect(stream, 1) },
      { link:guard(stream) }, { link:step() }, { link:pollfd() }, { link:events() },
      { link:timeout() },
    } do
      assert.is_nil(result[1])
      assert.equal("closed", result[2].code)
    end
    assert.same({ true, "closed" }, { link:closed() })
    peer:close()
    peer:close()
    assert.equal("closed", (select(2, peer:number())).code)
  end)

  it("is bounded by credit and by what it queues", function()
    local link, peer = core.channel()
    local stream = assert(link:open("START", { argv = { "x" }, flags = 4 }))
    assert.equal(262144, link:may_send(stream))
    local data, sent = ("z"):rep(65536), 0
    local ok, err
    repeat
      ok, err = link:send(stream, "STDIN", { data = data })
      sent = sent + (ok and #data or 0)
    until not ok
    assert.equal("again", err.code)
    assert.equal(262144, sent)
    assert.equal(0, link:may_send(stream))
    assert.equal("rw", link:events())
    err = select(2, link:send(stream, "STDIN", { data = ("z"):rep(65537) }))
    assert.is_true(err.code == "invalid" or err.code == "again")
    link:close()
    peer:close()
  end)

  it("says which field is too long", function()
    local link, peer = core.channel()
    local ok, err = link:open("START", { cwd = ("d"):rep(4097) })
    assert.is_nil(ok)
    assert.equal("invalid", err.code)
    assert.equal("cwd", err.field)
    err = select(2, link:open("START", { argv = { ("a"):rep(300000) } }))
    assert.equal("argv", err.field)
    link:close()
    peer:close()
  end)

  it("refuses what is out of place, without sending it", function()
    local link, peer = core.channel()
    local stream = assert(link:open("START", {}))
    local _, err = link:send(stream, "PUT_END", {})
    assert.equal("invalid", err.code)
    _, err = link:send(stream + 1, "CANCEL", {})
    assert.equal("closed", err.code)
    _, err = link:open("OPENED", {})
    assert.equal("invalid", err.code)
    _, err = link:collect(stream + 1, 10)
    assert.equal("closed", err.code)
    _, err = link:guard(99)
    assert.equal("closed", err.code)
    peer:close()
    _, err = link:open("OPEN_FILE", { path = "x" }, peer)
    assert.equal("closed", err.code)
    link:close()
  end)

  it("opens as many streams as there are, and no more", function()
    local link, peer = core.channel()
    for _ = 1, 256 do
      assert.is_number(link:open("PROCESSES", {}))
    end
    local _, err = link:open("PROCESSES", {})
    assert.equal("capacity", err.code)
    link:close()
    peer:close()
  end)

  it("raises for misuse", function()
    local link, peer = core.channel()
    local cyclic = setmetatable({}, { __index = function() error "called" end })
    for _, case in ipairs {
      { "no message is called 'NOPE'", "open", "NOPE", {} },
      { "START has no field 'nope'", "open", "START", { nope = 1 } },
      { "START has no field 'number'", "open", "START", { [1] = "x" } },
      { "field 'argv' of START", "open", "START", { argv = "x" } },
      { "field 'argv' of START", "open", "START", { argv = { 1 } } },
      { "field 'argv' of START", "open", "START", { argv = { {} } } },
      { "field 'cwd' of START", "open", "START", { cwd = 1 } },
      { "field 'flags' of START", "open", "START", { flags = -1 } },
      { "field 'flags' of START", "open", "START", { flags = 1.5 } },
      { "field 'flags' of START", "open", "START", { flags = 2 ^ 32 } },
      { "field 'flags' of START", "open", "START", { flags = "1" } },
      { "field 'flags' of START", "open", "START", { flags = 0 / 0 } },
      { "field 'timeout_ms' of START", "open", "START", { timeout_ms = 2 ^ 64 } },
      { "field 'timeout_ms' of START", "open", "START", { timeout_ms = -1 } },
      { "field 'follow' of STAT", "open", "STAT", { follow = 256 } },
      { "table expected", "open", "START", 1 },
      { "wovyr.Fd expected", "open", "START", {}, link },
      { "range", "send", -1, "PING", {} },
      { "number expected", "send", "x", "PING", {} },
      { "range", "collect", 1, -1 },
      { "range", "consumed", 1, 0.5 },
    } do
      local ok, err = pcall(link[case[2]], link, case[3], case[4], case[5], case[6])
      assert.is_false(ok)
      assert(tostring(err):find(case[1], 1, true), tostring(err) .. " lacks " .. case[1])
    end
    assert.is_number(link:open("START", cyclic)) -- raw access: no code of others runs
    assert.has_error(function() core.start(1) end)
    assert.has_error(function() core.start { path = {} } end)
    link:close()
    peer:close()
  end)

  it("is closed when it is forgotten", function()
    local function descriptors()
      local n = 0
      for _ in lfs.dir "/proc/self/fd" do
        n = n + 1
      end
      return n
    end
    collectgarbage()
    local before = descriptors()
    for _ = 1, 100 do
      core.channel()
      core.hub()
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, descriptors())
  end)
end)

describe("a guard", function()
  it("closes its session when it is forgotten, unless disarmed", function()
    local link, got = stand_in("")
    local first = assert(link:open("OPEN", {}))
    local second = assert(link:open("OPEN", {}))
    local third = assert(link:open("OPEN", {}))
    local length = #got(OUR_HELLO + 1)
    length = #H.eventually(function()
      local bytes = got(length)
      return #bytes >= OUR_HELLO + 3 * 64 and bytes or nil
    end)
    local function guards()
      local a, b = link:guard(first), link:guard(second)
      b:disarm()
      return a ~= nil
    end
    assert.is_true(guards())
    for _ = 1, 3 do
      collectgarbage()
    end
    local close = frame(TYPE.CLOSE, first, string.char(3) .. u32(0))
    assert.equal(close, got(length + #close):sub(length + 1))
    local guard = link:guard(third)
    guard:close()
    guard:close()
    close = close .. frame(TYPE.CLOSE, third, string.char(3) .. u32(0))
    assert.equal(close, got(length + #close):sub(length + 1))
    link:close()
    assert.equal(close, got(length + #close):sub(length + 1))
  end)
end)

describe("a hub", function()
  it("waits no longer than it is told, and not when something is there", function()
    local hub = assert(core.hub())
    local link, peer = core.channel()
    assert.is_true(hub:add(link))
    assert.is_true(hub:add(link))
    assert.equal(0, hub:step()) -- the greeting goes
    local before = core.now()
    assert.equal(0, hub:wait(0.05))
    local waited = core.now() - before
    assert.is_true(waited >= 0.049 and waited < 2)
    assert.equal(0, hub:step())
    assert.is_nil(hub:timeout())
    peer:close()
    assert.equal(1, hub:wait())
    assert.equal(0, hub:timeout())
    assert.equal("lost", (select(2, link:next())).code)
    assert.equal(0, hub:wait(0))
    assert.is_true(hub:remove(link))
    assert.is_true(hub:remove(link))
    link:close()
    assert.equal("closed", (select(2, hub:add(link))).code)
    assert.has_error(function() hub:wait(-1) end)
    assert.is_number(hub:pollfd())
    hub:close()
    hub:close()
    assert.equal("closed", (select(2, hub:wait(0))).code)
    assert.equal("closed", (select(2, hub:step())).code)
    assert.equal("closed", (select(2, hub:pollfd())).code)
  end)

  it("and its links may go in any order", function()
    local hub = assert(core.hub())
    local a, peer_a = core.channel()
    local b, peer_b = core.channel()
    hub:add(a)
    hub:add(b)
    a:close()
    hub:close()
    b:close()
    peer_a:close()
    peer_b:close()
  end)
end)

describe("a collector", function()
  it("keeps everything up to its cap", function()
    local c = core.collector(2048)
    for i = 1, 256 do
      c:add(1, every_byte:sub(i, i))
    end
    c:add(2, every_byte)
    c:add(3, every_byte .. every_byte)
    c:add(1, "")
    assert.equal(1024, c:bytes())
    local out, err, missing_out, missing_err, gap = c:take()
    assert.equal(every_byte:rep(3), out)
    assert.equal(every_byte, err)
    assert.same({ 0, 0, 0 }, { missing_out, missing_err, gap })
    assert.same({ "", "", 0, 0, 0 }, { c:take() })
    assert.equal(0, c:bytes())
    c:add(2, "again")
    assert.equal("again", (select(2, c:take())))
  end)

  it("keeps first and last bytes of each stream beyond it", function()
    local c = core.collector(80)
    local out, err = {}, {}
    for i = 1, 1000 do
      local piece = ("%d,"):format(i)
      c:add(1, piece)
      out[#out + 1] = piece
      if i % 300 == 0 then
        c:add(2, piece)
        err[#err + 1] = piece
      end
    end
    out, err = table.concat(out), table.concat(err)
    local got_out, got_err, missing_out, missing_err = c:take()
    assert.equal(out:sub(1, 10) .. out:sub(-10), got_out)
    assert.equal(#out - 20, missing_out)
    assert.equal(err, got_err)
    assert.equal(0, missing_err)
  end)

  it("does so with one large piece too", function()
    local data = every_byte:rep(5000)
    local c = core.collector(800000)
    c:add(1, data)
    local out, _, missing = c:take()
    assert.equal(200000, #out)
    assert.equal(data:sub(1, 100000), out:sub(1, 100000))
    assert.equal(data:sub(-100000), out:sub(-100000))
    assert.equal(#data - 200000, missing)
  end)

  it("counts only, with a cap of nothing or closed", function()
    local c = core.collector(0)
    c:add(1, "abc")
    assert.same({ "", "", 3, 0, 0 }, { c:take() })
    c = core.collector(100)
    c:add(1, "abc")
    c:close()
    c:close()
    c:add(2, "abcd")
    assert.same({ "", "", 0, 4, 0 }, { c:take() })
  end)

  it("raises for misuse", function()
    local c = core.collector(10)
    for _, source in ipairs { 0, 4, -1, 1.5, "stdout" } do
      assert.has_error(function() c:add(source, "x") end)
    end
    assert.has_error(function() c:add(1) end)
    assert.has_error(function() core.collector() end)
    assert.has_error(function() core.collector(-1) end)
  end)
end)
