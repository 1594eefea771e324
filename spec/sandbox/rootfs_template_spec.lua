-- A template that wovyr unpacked: a tree or a tar, given to each session with owners of its
-- own range, writable without being written.

local H = require "spec.helper"
local S = require "spec.support.session"

-- A small root of the statically linked busybox.
local function tree()
  local dir = H.tmpdir() .. "/root"
  local status, text = H.sh(([[
set -e
mkdir -p %s && cd %s
mkdir -p bin etc usr/bin usr/lib/dir var root home/user opt/app
cp "$(command -v busybox)" bin/busybox
for tool in sh ls cat echo mkdir mv rm id touch stat chown chmod test grep env sleep wc; do
  ln -s busybox bin/$tool
done
printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n' > etc/passwd
printf 'root:x:0:\nuser:x:1000:\n' > etc/group
echo 'for root only' > etc/secret && chmod 600 etc/secret
echo data > opt/app/data && echo lib > usr/lib/dir/lib
chown -R 1000:1000 home/user opt/app
]]):format(dir, dir))
  assert(status == 0, text)
  return dir
end

-- Unpack as a template of a fresh name, removed after fn.
local function with_template(rt, base, fn)
  local name = "spec-" .. tostring(math.floor(H.now() * 1e6))
  local template = rt:template { name = name, base = base }
  assert(template:build())
  local ok, err = pcall(fn, name)
  local removed, why = H.eventually(function() return template:remove() end, 5)
  if not ok then error(err, 0) end
  assert(removed, tostring(why))
end

local SH = { "/bin/sh", "-c" }

describe("a template made from a tree", function()
  it("is the root of a session, with its owners", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      with_template(rt, { tree = tree() }, function(name)
        local s = S.open(rt, { template = name, shell = SH })
        assert.equal("for root only\n", S.run(s, "cat /etc/secret", { user = "root" }))
        assert.is_false(assert(s:exec("cat /etc/secret")).ok)
        assert.equal("user\n", S.run(s, "stat -c %U /opt/app/data"))
        assert.equal("0 root\n", S.run(s, "stat -c '%u %U' /etc/passwd"))
        s:kill()
      end)
    end)()
  end)

  it("is writable, apart for each session, and stays as it was", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      with_template(rt, { tree = tree() }, function(name)
        local a = S.open(rt, { template = name, shell = SH })
        local b = S.open(rt, { template = name, shell = SH })
        S.run(a, "echo new > /etc/new; echo more >> /opt/app/data; rm /etc/secret", { user = "root" })
        S.run(a, "mv /usr/lib/dir /usr/lib/moved && cat /usr/lib/moved/lib", { user = "root" })
        assert.equal("data\n", S.run(b, "cat /opt/app/data"))
        S.run(b, "test ! -e /etc/new && test -e /usr/lib/dir/lib && test -e /etc/secret", { user = "root" })
        a:kill()
        local c = S.open(rt, { template = name, shell = SH })
        S.run(c, "test ! -e /etc/new && test -e /usr/lib/dir/lib")
        b:kill()
        c:kill()
      end)
    end)()
  end)

  it("has the limits of its session", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      with_template(rt, { tree = tree() }, function(name)
        local s = S.open(rt, { template = name, shell = SH, limits = { disk = "16M" } })
        local ok, err = s.files:write("/opt/app/big", ("x"):rep(20 * 2 ^ 20), { user = "root" })
        assert.is_nil(ok)
        assert.equal("limit", err.code)
        s:kill()
      end)
    end)()
  end)

  it("cannot be removed while a session stands on it, nor be replaced", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      local base = { tree = tree() }
      with_template(rt, base, function(name)
        local s = S.open(rt, { template = name, shell = SH })
        local template = rt:template { name = name, base = base }
        assert.equal("conflict", select(2, template:remove()).code)
        assert.equal("exists", select(2, template:build()).code)
        s:kill()
      end)
    end)()
  end)
end)

describe("a template made from a tar", function()
  it("holds what the archive holds", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      local dir = H.tmpdir()
      assert.equal(0, (H.sh(("tar -C %s -czf %s/root.tar.gz ."):format(tree(), dir))))
      with_template(rt, { tar = dir .. "/root.tar.gz" }, function(name)
        local s = S.open(rt, { template = name, shell = SH })
        assert.equal("for root only\n", S.run(s, "cat /etc/secret", { user = "root" }))
        s:kill()
      end)
    end)()
  end)

  it("never writes outside: dots, absolute names and links", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      local dir = H.tmpdir()
      local victim = H.tmpdir()
      assert.equal(0, (H.sh(([[
python3 - <<'PY'
import io, tarfile
with tarfile.open("%s/evil.tar", "w") as t:
    def put(name, data=b"evil", **kw):
        i = tarfile.TarInfo(name); i.size = len(data)
        for k, v in kw.items(): setattr(i, k, v)
        t.addfile(i, io.BytesIO(data) if i.size else None)
    put("../../../../../../../../../../..%s/dots")
    put("%s/absolute")
    put("link", b"", type=tarfile.SYMTYPE, linkname="%s")
    put("link/through")
    put("hard", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")
PY]]):format(dir, victim, victim, victim))))
      local template = rt:template { name = "spec-evil", base = { tar = dir .. "/evil.tar" } }
      template:build()
      template:remove()
      local _, left = H.sh("ls -A " .. victim)
      assert.equal("", left:gsub("%s", ""))
    end)()
  end)

  it("that is none is refused, and leaves nothing", function()
    H.skip_unless("root")
    S.runtime(function(rt)
      local dir = H.tmpdir()
      H.write(dir .. "/not.tar", ("no archive "):rep(1000))
      local template = rt:template { name = "spec-none", base = { tar = dir .. "/not.tar" } }
      local ok, err = template:build()
      assert.is_nil(ok)
      assert.equal("failed", err.code)
      assert.equal("not_found", select(2, template:remove()).code)
      local none, why = rt:template { name = "spec-none", base = { tree = "/no/such" } }:build()
      assert.is_nil(none)
      assert.equal("failed", why.code)
      assert.truthy(tostring(why):find("/no/such", 1, true), tostring(why))
    end)()
  end)
end)

describe("building a template", function()
  it("needs root", function()
    H.skip_unless("user")
    S.runtime(function(rt)
      local ok, err = rt:template { name = "spec-user", base = { tree = "/usr/share/doc" } }:build()
      assert.is_nil(ok)
      assert.equal("unsupported", err.code)
      assert.truthy(tostring(err):find("root", 1, true))
    end)()
  end)
end)
