-- run.lua - wovyr beside its peers, in one run, by turns
--
--     make bench                      all rows
--     make bench ROWS="exec open"     rows whose name contains one of the words
--
-- Prints medians with quartiles and ratios, writes build/bench.json, and exits non-zero
-- when a target of docs/architecture.md is missed. Times are never compared with fixed
-- numbers: only with the peer beside them.

package.path = "bench/?.lua;" .. package.path
local measure = require "measure"
local rows = require "rows"

local wanted = {}
for word in (os.getenv("ROWS") or ""):gmatch("%S+") do wanted[#wanted + 1] = word end
local runs = tonumber(os.getenv("RUNS")) or 21

local function chosen(name)
  if #wanted == 0 then return true end
  for _, word in ipairs(wanted) do
    if name:find(word, 1, true) then return true end
  end
  return false
end

local report, missed = {}, 0
for _, row in ipairs(rows.list()) do
  if chosen(row.name) then
    local ok, err = pcall(function()
      if row.measure then
        row.note = row.measure()
      else
        row.ours, row.peer, row.ratio =
          measure.versus(row.runs or runs, row.sample, row.peer_sample)
      end
    end)
    if row.done then row.done() end
    if not ok then row.note = "FAILED: " .. tostring(err) end
    print(measure.line(row))
    io.stdout:flush()
    if not ok or not row.note and measure.missed(row) then missed = missed + 1 end
    report[#report + 1] = {
      name = row.name, ours = row.ours, peer = row.peer, peer_name = row.peer_name,
      ratio = row.ratio, target = row.target, note = row.note,
    }
  end
end
rows.finish()

local file = assert(io.open("build/bench.json", "w"))
file:write(require("cjson").encode(report), "\n")
file:close()
if missed > 0 then
  print(("%d rows missed their target"):format(missed))
  os.exit(1)
end
