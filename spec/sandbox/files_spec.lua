-- Files: what is written is read, as the acting user, and never outside.

local H = require "spec.helper"
local S = require "spec.support.session"

local function bytes()
  local all = {}
  for i = 0, 255 do all[#all + 1] = string.char(i) end
  return table.concat(all)
end

describe("files", function()
  it("round-trip every byte", S.session(function(s)
    local stat = assert(s.files:write("f", bytes()))
    assert.equal(256, stat.size)
    assert.equal("file", stat.type)
    local data, again = assert(s.files:read("f"))
    assert.equal(bytes(), data)
    assert.equal(stat.version, again.version)
    assert.equal("abc", assert(s.files:read("f", { offset = 97, length = 3 })))
  end))

  it("carry 100 MB both ways", S.session(function(s)
    local block = bytes():rep(4096)
    local data = block:rep(100)
    assert(s.files:write("big", data))
    assert.equal(tostring(#data), S.run(s, "wc -c < big"):match("%d+"))
    local got = assert(s.files:read("big", { max = "200M" }))
    assert.is_true(got == data)
  end, { limits = { memory = "1G", disk = "256M" }, best_effort = { "memory" } }))

  it("are versioned", S.session(function(s)
    local one = assert(s.files:write("f", "1"))
    local two = assert(s.files:write("f", "2", { if_version = one.version }))
    assert.not_equal(one.version, two.version)
    local _, err = s.files:write("f", "3", { if_version = one.version })
    assert.equal("conflict", err.code)
    assert.equal("2", assert(s.files:read("f")))
    S.run(s, "echo changed > f")
    _, err = s.files:write("f", "3", { if_version = two.version })
    assert.equal("conflict", err.code)
  end))

  it("appear whole: a reader sees the old or the new", S.session(function(s)
    assert(s.files:write("f", ("a"):rep(100000)))
    local watcher = assert(s:start { "python3", "-c", [[
import time
end = time.time() + 1.5
seen = set()
while time.time() < end:
    data = open("/workspace/f").read()
    seen.add((len(data), len(set(data))))
print(sorted(seen))
]] })
    for i = 1, 30 do
      assert(s.files:write("f", (i % 2 == 0 and "a" or "b"):rep(100000)))
      S.run(s, "sleep 0.02")
    end
    assert(watcher:wait { timeout = 20 })
    local text = assert(watcher:output()):next { timeout = 1 }
    assert.equal("[(100000, 1)]\n", text.data)
    assert.equal("f\n", S.run(s, "ls -A"))
  end))

  it("belong to who wrote them", S.session(function(s)
    assert(s.files:write("mine", "x"))
    assert(s.files:write("/tmp/roots", "x", { user = "root", mode = "0600" }))
    assert.equal("user 644\nroot 600\n", S.run(s, "stat -c '%U %a' mine /tmp/roots"))
    assert(s.files:write("script", "#!/bin/sh\necho ran\n", { mode = "0755" }))
    assert.equal("ran\n", S.run(s, "./script"))
    assert(s.files:write("script", "#!/bin/sh\necho again\n"))
    assert.equal("again\n", S.run(s, "./script"))
  end))

  it("append, make parents, and stat", S.session(function(s)
    assert(s.files:write("a/b/c", "1"))
    assert(s.files:write("a/b/c", "2", { append = true }))
    assert.equal("12", assert(s.files:read("/workspace/a/b/c")))
    local stat = assert(s.files:stat("a/b"))
    assert.equal("directory", stat.type)
    assert.equal("user", stat.user)
    assert.equal("b", stat.name)
    S.run(s, "ln -s a/b/c link")
    assert.equal("symlink", assert(s.files:stat("link", { follow = false })).type)
    assert.equal("a/b/c", assert(s.files:stat("link", { follow = false })).target)
    assert.equal("file", assert(s.files:stat("link")).type)
    assert.is_true(s.files:exists("a"))
    assert.is_false(s.files:exists("b"))
    assert.equal("x", assert(s.files:write("~/home", "x") and s.files:read("/home/user/home")))
  end))

  it("list in a stable order, page by page", S.session(function(s)
    S.run(s, "mkdir -p d/sub && for i in $(seq 25); do echo > d/$(printf %02d $i); done && echo > d/sub/x")
    local names, after = {}, nil
    repeat
      local page, next_page = assert(s.files:list("d", { limit = 10, after = after }))
      assert.truthy(#page <= 10)
      for _, entry in ipairs(page) do names[#names + 1] = entry.name end
      after = next_page
    until not after
    assert.equal(26, #names)
    local sorted = { (table.unpack or unpack)(names) }
    table.sort(sorted)
    assert.same(sorted, names)
    local deep = assert(s.files:list("d", { depth = 2, glob = "**/x" }))
    assert.equal("/workspace/d/sub/x", deep[1].path)
  end))

  it("are made, moved and removed", S.session(function(s)
    assert(s.files:mkdir("d/e", { parents = true }))
    assert(s.files:write("d/e/f", "x"))
    assert(s.files:rename("d/e/f", "d/g"))
    assert.equal("x", assert(s.files:read("d/g")))
    assert(s.files:remove("d", { recursive = true }))
    assert.is_false(s.files:exists("d"))
    for _, path in ipairs { "/", "/workspace", "/tmp", "/usr" } do
      local ok = s.files:remove(path, { recursive = true, user = "root" })
      assert.is_nil(ok)
    end
  end))

  it("act as the user, not as root: a planted link leads nowhere", S.session(function(s)
    S.run(s, "echo root > /tmp/private && chmod 600 /tmp/private", { user = "root" })
    S.run(s, "ln -s /tmp/private trap && ln -s /etc/new trap2 && ln -s /proc/1/environ trap3 "
      .. "&& ln -s /proc/self/mem trap4")
    for _, name in ipairs { "trap", "trap3", "trap4" } do
      assert.is_nil((s.files:read(name)))
    end
    assert.is_nil((s.files:write("trap", "x")))
    assert.is_nil((s.files:write("trap2", "x", { user = "root" })))
    assert.is_nil((s.files:read("/proc/1/environ", { user = "root" })))
    assert.equal("root\n", S.run(s, "cat /tmp/private", { user = "root" }))
  end))

  it("come from the host and go to it", S.session(function(s)
    local dir = H.tmpdir()
    H.write(dir .. "/in", bytes())
    assert.equal(256, assert(s.files:upload(dir .. "/in", "up")).size)
    assert.equal(bytes(), assert(s.files:read("up")))
    S.run(s, "cat up up > down")
    assert(s.files:download("down", dir .. "/out"))
    assert.equal(bytes():rep(2), H.read(dir .. "/out"))
    local _, err = s.files:upload(dir .. "/none", "x")
    assert.equal("not_found", err.code)
    assert.is_nil((s.files:download("none", dir .. "/none")))
    assert.is_nil(H.read(dir .. "/none"))
  end))

  it("keep the old file when the disk is full", S.session(function(s)
    assert(s.files:write("f", "old"))
    local ok, err = s.files:write("f", ("x"):rep(20 * 2 ^ 20))
    assert.is_nil(ok)
    assert.equal("limit", err.code)
    assert.equal("disk", err.reason)
    assert.equal("old", assert(s.files:read("f")))
    assert.equal("f\n", S.run(s, "ls -A"))
    assert(s.files:write("f", "new"))
  end, { limits = { disk = "16M" } }))

  it("take any name that the kernel takes", S.session(function(s)
    for _, name in ipairs { "a b", "new\nline", "\255\254", ("n"):rep(255), "-rf", "*" } do
      assert(s.files:write(name, "x"))
      assert.equal("x", assert(s.files:read(name)))
      assert.equal(name, assert(s.files:stat(name)).name)
      assert(s.files:remove(name))
    end
  end))
end)
