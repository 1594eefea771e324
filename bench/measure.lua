-- measure.lua - samples to medians, quartiles and ratios; as text and as JSON

local M = {}

local function quantile(sorted, q)
  local at = 1 + (#sorted - 1) * q
  local low = math.floor(at)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low)
end

--- Quartiles of a list of numbers.
---@param samples number[]
---@return { q1: number, median: number, q3: number, n: integer }
function M.quartiles(samples)
  local sorted = {}
  for i, v in ipairs(samples) do sorted[i] = v end
  table.sort(sorted)
  return {
    q1 = quantile(sorted, 0.25), median = quantile(sorted, 0.5), q3 = quantile(sorted, 0.75),
    p99 = quantile(sorted, 0.99), n = #sorted,
  }
end

--- Run `ours` and `peer` by turns, so that what disturbs the machine disturbs both.
--- Each returns the microseconds of one sample; the ratio is taken pair by pair.
---@param runs integer
function M.versus(runs, ours, peer)
  local a, b, ratios = {}, {}, {}
  ours()
  peer()
  for i = 1, runs do
    if i % 2 == 0 then a[i], b[i] = ours(), peer() else b[i], a[i] = peer(), ours() end
    ratios[i] = a[i] / b[i]
  end
  return M.quartiles(a), M.quartiles(b), M.quartiles(ratios)
end

--- A target is missed when even the better quartile of the ratio is on its wrong side.
function M.missed(row)
  if not row.target then return false end
  if row.atleast then return row.ratio.q3 < row.target end
  return row.ratio.q1 > row.target
end

local function microseconds(us)
  if us >= 1e6 then return ("%.2f s"):format(us / 1e6) end
  if us >= 1e3 then return ("%.2f ms"):format(us / 1e3) end
  return ("%.0f us"):format(us)
end

local function spread(q, format)
  return ("%s [%s %s]"):format(format(q.median), format(q.q1), format(q.q3))
end

--- One line of the report.
function M.line(row)
  if row.note then return ("%-44s %s"):format(row.name, row.note) end
  local verdict = "reported"
  if row.target then
    verdict = ("%s %.2f %s"):format(row.atleast and ">=" or "<=", row.target,
      M.missed(row) and "MISSED" or "met")
  end
  return ("%-44s %-30s %-12s %-30s ratio %-18s %s"):format(
    row.name, spread(row.ours, microseconds), row.peer_name, spread(row.peer, microseconds),
    spread(row.ratio, function(v) return ("%.2f"):format(v) end), verdict)
end

return M
