-- stdin: empty by default, given whole, given in pieces, given by hand.

local S = require "spec.support.session"

describe("stdin", function()
  it("is empty by default", S.session(function(s)
    local out = assert(s:exec({ "wc", "-c" }, { timeout = "10s" }))
    assert.equal("0\n", out.stdout)
  end))

  it("takes a string and sends its end", S.session(function(s)
    assert.equal("hello", S.run(s, { "cat" }, { stdin = "hello" }))
  end))

  it("takes a function until it returns nil", S.session(function(s)
    local n = 0
    local out = S.run(s, { "cat" }, { stdin = function()
      n = n + 1
      return n <= 3 and ("part %d\n"):format(n) or nil
    end })
    assert.equal("part 1\npart 2\npart 3\n", out)
  end))

  it("carries 100 MB through cat and back", S.session(function(s)
    local block = ("0123456789abcdef"):rep(4096)
    local blocks = 100 * 2 ^ 20 / #block
    local sent, got, sum = 0, 0, 0
    local out = assert(s:exec({ "cat" }, {
      stdin = function()
        sent = sent + 1
        return sent <= blocks and block or nil
      end,
      on_stdout = function(data)
        got, sum = got + #data, (sum + data:byte(1) + data:byte(-1)) % 65536
      end,
      output = "1M", timeout = "2m",
    }))
    assert.is_true(out.ok)
    assert.equal(100 * 2 ^ 20, got)
  end))

  it("true is written by hand, and closed by hand", S.session(function(s)
    local p = assert(s:start({ "cat" }, { stdin = true }))
    assert(p:write("one "))
    assert(p:write("two"))
    assert(p:close_stdin())
    local out = assert(p:wait { timeout = 10 })
    assert.equal("exited", out.cause)
    local text = {}
    for item in assert(p:output()) do text[#text + 1] = item.data end
    assert.equal("one two", table.concat(text))
  end))

  it("of a reader that went away is a typed error, not a signal", S.session(function(s)
    local p = assert(s:start({ "true" }, { stdin = true }))
    assert(p:wait { timeout = 10 })
    local ok, err = p:write("x")
    assert.is_nil(ok)
    assert.equal("closed", err.code)
  end))
end)
