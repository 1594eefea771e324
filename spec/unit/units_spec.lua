-- units_spec.lua - sizes, durations, modes, and numbers that reach the kernel as text
-- SPDX-License-Identifier: MIT

local units = require "wovyr.units"

describe("units.size", function()
  it("takes bytes and units of 1024", function()
    for text, bytes in pairs {
      ["0"] = 0, ["100"] = 100, ["1K"] = 1024, ["512M"] = 512 * 2 ^ 20, ["1.5G"] = 1.5 * 2 ^ 30,
      ["2T"] = 2 ^ 41, ["64KiB"] = 65536, ["1 M"] = 2 ^ 20,
    } do
      assert.equal(bytes, (units.size(text)), text)
    end
    assert.equal(4096, (units.size(4096)))
    assert.equal(10, (units.size(10.9)))
  end)

  it("refuses the rest, and says what it wants", function()
    for _, v in ipairs { "", "M", "1Q", "-1", "1M2", "0x10", "1e3", -1, 0 / 0, math.huge, true, "9e99G" } do
      local bytes, expected = units.size(v)
      assert.is_nil(bytes)
      assert.truthy(expected:find("512M", 1, true))
    end
    assert.is_nil((units.size {}))
    assert.is_nil((units.size(nil)))
  end)
end)

describe("units.duration", function()
  it("takes seconds and units", function()
    for text, seconds in pairs {
      ["500ms"] = 0.5, ["30s"] = 30, ["5m"] = 300, ["1h"] = 3600, ["2d"] = 172800, ["1h30m"] = 5400,
      ["1.5s"] = 1.5, ["10"] = 10, ["250us"] = 0.00025,
    } do
      assert.is_true(math.abs(seconds - units.duration(text)) < 1e-9, text)
    end
    assert.equal(0.25, (units.duration(0.25)))
    assert.equal(0, (units.duration(0)))
  end)

  it("refuses the rest", function()
    for _, v in ipairs { "", "m", "5 parsecs", "-1s", "1m2x", "1w", -1, 0 / 0, math.huge, false } do
      assert.is_nil((units.duration(v)))
    end
    assert.is_nil((units.duration {}))
  end)

  it("becomes milliseconds that are never cut to nothing", function()
    assert.equal("1", units.integer(units.ms(0.0001)))
    assert.equal("1500", units.integer(units.ms(1.5)))
    assert.equal("0", units.integer(units.ms(0)))
  end)
end)

describe("units.mode", function()
  it("takes octal strings only", function()
    assert.equal(420, (units.mode "0644"))
    assert.equal(493, (units.mode "755"))
    assert.equal(2541, (units.mode "4755"))
    for _, v in ipairs { 420, "0844", "rw-", "", "0o644", "06444444" } do
      assert.is_nil((units.mode(v)))
    end
    assert.equal("0644", units.mode_text(33188)) -- a regular file's whole st_mode
  end)
end)

describe("units.integer", function()
  it("prints no exponent and no fraction in either VM", function()
    assert.equal("536870912", units.integer(1024 ^ 2 * 512))
    assert.equal("1099511627776", units.integer(2 ^ 40))
    assert.equal("9007199254740992", units.integer(2 ^ 53))
    assert.equal("0", units.integer(0))
  end)
end)

describe("units for people", function()
  it("says whole units where they fit", function()
    assert.equal("512M", units.size_text(512 * 2 ^ 20))
    assert.equal("1G", units.size_text(2 ^ 30))
    assert.equal("1536M", units.size_text(1.5 * 2 ^ 30))
    assert.equal("1000", units.size_text(1000))
    assert.equal("0", units.size_text(0))
    assert.equal("60 s", units.seconds_text(60))
    assert.equal("0.5 s", units.seconds_text(0.5))
  end)
end)
