--- schema.lua - the one checker of option tables.
--
-- A schema is data: a list of { name, type, default, doc }. A wrong type, a value outside its
-- set or an unknown name is a mistake of the program, so it raises; the raised value is an
-- Error (code "invalid", with field, value and hint), so that pcall gives something to read.

local E = require "wovyr.error"
local units = require "wovyr.units"

local M = {}

-- Distance of two names: insertions, deletions, replacements, neighbours swapped.
local function distance(a, b)
  local rows = { [0] = {} }
  for j = 0, #b do
    rows[0][j] = j
  end
  for i = 1, #a do
    rows[i] = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + same)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, rows[i - 2][j - 2] + 1)
      end
      rows[i][j] = best
    end
  end
  return rows[#a][#b]
end

--- The known name that was probably meant.
---@param name string
---@param names string[]
---@return string?
function M.nearest(name, names)
  local best, best_at
  for _, candidate in ipairs(names) do
    local d = distance(name:lower(), candidate)
    local prefix = #name >= 2 and candidate:sub(1, #name) == name:lower()
    if d <= math.max(1, math.floor(#candidate / 3)) or prefix then
      if not best or d < best_at then
        best, best_at = candidate, d
      end
    end
  end
  return best
end

local function show(v)
  if type(v) == "string" then
    return ("%q"):format(#v > 60 and v:sub(1, 57) .. "..." or v)
  end
  return type(v) == "table" and "a table" or tostring(v)
end

local function list_of_strings(v)
  if type(v) ~= "table" then
    return nil, "a list of strings"
  end
  local copy, count = {}, 0
  for _ in pairs(v) do
    count = count + 1
  end
  for i = 1, count do
    if type(v[i]) ~= "string" then
      return nil, "a list of strings"
    end
    copy[i] = v[i]
  end
  return copy
end

local function map_of_strings(v)
  if type(v) ~= "table" then
    return nil, "a table of names and strings"
  end
  local copy = {}
  for name, value in pairs(v) do
    if type(name) ~= "string" or (type(value) ~= "string" and type(value) ~= "number") then
      return nil, "a table of names and strings"
    end
    copy[name] = type(value) == "number" and value % 1 == 0 and units.integer(value)
      or tostring(value)
  end
  return copy
end

local function plain(name)
  return function(v)
    if type(v) == name then
      return v
    end
    return nil, name == "function" and "a function" or "a " .. name
  end
end

-- Each turns a value into what the library works with, or answers nil and what it expected.
local types = {
  string = plain "string",
  boolean = plain "boolean",
  number = plain "number",
  ["function"] = plain "function",
  table = plain "table",
  size = units.size,
  duration = units.duration,
  mode = units.mode,
  strings = list_of_strings,
  map = map_of_strings,
  ["true"] = function(v)
    if v == true then
      return true
    end
    return nil, "true"
  end,
  ["false"] = function(v)
    if v == false then
      return false
    end
    return nil, "false"
  end,
  integer = function(v)
    if type(v) == "number" and v % 1 == 0 and v >= -2 ^ 53 and v <= 2 ^ 53 then
      return math.floor(v)
    end
    return nil, "a whole number"
  end,
  count = function(v)
    if type(v) == "number" and v % 1 == 0 and v >= 1 and v <= 2 ^ 31 - 1 then
      return math.floor(v)
    end
    return nil, "a whole number above zero"
  end,
  cpus = function(v)
    if type(v) == "number" and v >= 0.01 and v <= 4096 then
      return v
    end
    return nil, "a number of CPUs, at least 0.01"
  end,
}

local function one_of(v, values)
  for _, value in ipairs(values) do
    if v == value then
      return v
    end
  end
  local quoted = {}
  for i, value in ipairs(values) do
    quoted[i] = ("%q"):format(value)
  end
  return nil, "one of " .. table.concat(quoted, ", ")
end

local check

local function check_value(def, v, path, op)
  local wanted = {}
  if def.fields then
    if type(v) == "table" then
      return check(def.fields, v, op, path)
    end
    wanted[1] = "a table"
  end
  if def.values then
    local got, expected = one_of(v, def.values)
    if got ~= nil then
      return got
    end
    wanted[#wanted + 1] = expected
  end
  for name in (def.type or ""):gmatch("[^|]+") do
    local got, expected = types[name](v)
    if got ~= nil then
      return got
    end
    wanted[#wanted + 1] = expected
  end
  local near = def.values and type(v) == "string" and M.nearest(v, def.values)
  local expected = table.concat(wanted, " or ")
  return E.misuse(op, ("%s must be %s, not %s"):format(path, expected, show(v)), {
    field = path,
    value = v,
    hint = near and ("did you mean %q?"):format(near) or def.doc and path .. ": " .. def.doc or nil,
  })
end

function check(fields, given, op, prefix)
  local checked, by_name, names = {}, {}, {}
  for i, def in ipairs(fields) do
    by_name[def.name], names[i] = def, def.name
  end
  local function path_of(name)
    return prefix and prefix .. "." .. name or name
  end
  for name, v in pairs(given) do
    local def = by_name[name]
    if not def then
      local near = type(name) == "string" and M.nearest(name, names)
      local text = type(name) == "string" and ("%q"):format(name) or "[" .. tostring(name) .. "]"
      return E.misuse(op, "unknown option " .. text, {
        field = path_of(tostring(name)),
        value = v,
        hint = near and ("did you mean %q?"):format(near)
          or "known: " .. table.concat(names, ", "),
      })
    end
    checked[name] = check_value(def, v, path_of(name), op)
  end
  for _, def in ipairs(fields) do
    if checked[def.name] == nil and def.default ~= nil then
      checked[def.name] = check_value(def, def.default, path_of(def.name), op)
    end
  end
  return checked
end

--- A checked copy of an option table, in the library's units. Raises an Error (code
--- "invalid") for an unknown name, a wrong type or a value outside its set.
---@param fields table the schema
---@param given table? absent is an empty table
---@param op string the call it belongs to
---@return table
function M.check(fields, given, op)
  if given ~= nil and type(given) ~= "table" then
    return E.misuse(op, "options must be a table, not " .. show(given), {
      field = "options",
      value = given,
    })
  end
  return check(fields, given or {}, op, nil)
end

--- Raise unless v has one of the Lua types in `expected` ("string|table").
---@param op string
---@param field string the argument's name
---@param v any
---@param expected string
function M.argument(op, field, v, expected)
  for name in expected:gmatch("[^|]+") do
    if type(v) == name then
      return
    end
  end
  E.misuse(op, ("%s must be a %s, not %s"):format(field, expected:gsub("|", " or a "), show(v)), {
    field = field,
    value = v,
  })
end

return M
