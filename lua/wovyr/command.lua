--- command.lua - what a caller wants to run, as the fields of a START message.

local E = require "wovyr.error"
local schema = require "wovyr.schema"
local units = require "wovyr.units"

local M = {}

local FLAG = { FOLLOW = 1, MERGE = 2, STDIN = 4, PTY = 8, KILL_OUTPUT = 16, OWNED = 32, UMASK = 64 }

-- A message is at most 256 KiB; what is left beside argv and env is for paths and names.
local ARGUMENTS_MAX = 262144 - 12288

-- One string of argv or of the environment (MAX_ARG_STRLEN of Linux, with its NUL).
local STRING_MAX = 131071

local MAX_TEXT = { cwd = 4095, user = 63, tag = 128, key = 128 }

local function has_nul(text)
  return text:find("\0", 1, true) ~= nil
end

local function invalid(op, field, message, hint)
  return nil, E.new("invalid", op, message, { field = field, hint = hint })
end

-- A string runs by the shell, a table is argv.
local function argv_of(op, cmd, shell)
  local argv = {}
  if type(cmd) == "string" then
    for i, word in ipairs(shell) do
      argv[i] = word
    end
    argv[#argv + 1] = cmd
    return argv
  end
  for i, word in ipairs(cmd) do
    if type(word) == "number" and word % 1 == 0 then
      word = units.integer(word)
    end
    if type(word) ~= "string" then
      E.misuse(op, ("cmd[%d] must be a string, not a %s"):format(i, type(word)), {
        field = "cmd",
        value = word,
      })
    end
    argv[i] = word
  end
  for key in pairs(cmd) do
    if type(key) ~= "number" or key < 1 or key > #argv or key % 1 ~= 0 then
      E.misuse(op, "cmd must be a list of strings", { field = "cmd", value = cmd })
    end
  end
  if #argv == 0 then
    return invalid(op, "cmd", "the command is empty")
  end
  return argv
end

local function env_of(op, ...)
  local merged, env = {}, {}
  for _, layer in ipairs { ... } do
    for name, value in pairs(layer) do
      merged[name] = value
    end
  end
  for name, value in pairs(merged) do
    if name == "" or name:find("=", 1, true) or has_nul(name) or has_nul(value) then
      return invalid(op, "env", ("not an environment variable: %q"):format(name))
    end
    env[#env + 1] = name .. "=" .. value
  end
  table.sort(env)
  return env
end

local function bytes_of(list)
  local total = 0
  for _, item in ipairs(list) do
    total = total + #item + 4
  end
  return total
end

local function check_texts(op, fields)
  for name, max in pairs(MAX_TEXT) do
    local text = fields[name]
    if text and has_nul(text) then
      return invalid(op, name, name .. " contains a zero byte")
    elseif text and #text > max then
      return invalid(op, name, ("%s is longer than %d bytes"):format(name, max))
    end
  end
  if fields.argv[1] == "" then
    return invalid(op, "cmd", "the name of the program is empty")
  end
  for _, word in ipairs(fields.argv) do
    if has_nul(word) then
      return invalid(op, "cmd", "the command contains a zero byte",
        "write such bytes to a file, or give them as stdin")
    elseif #word > STRING_MAX then
      return invalid(op, "cmd", ("one argument takes %d bytes, at most %d are possible")
        :format(#word, STRING_MAX), "write the data to a file first, or give it as stdin")
    end
  end
  for _, item in ipairs(fields.env) do
    if #item > STRING_MAX then
      return invalid(op, "env", ("one variable takes %d bytes, at most %d are possible")
        :format(#item, STRING_MAX), "write the data to a file first")
    end
  end
  local argv_bytes, env_bytes = bytes_of(fields.argv), bytes_of(fields.env)
  if argv_bytes + env_bytes > ARGUMENTS_MAX then
    return invalid(op, argv_bytes >= env_bytes and "cmd" or "env",
      ("arguments and environment take %d bytes, at most %d are possible")
        :format(argv_bytes + env_bytes, ARGUMENTS_MAX),
      "write the data to a file first, or give it as stdin")
  end
  return true
end

--- What an `output` option means.
---@param output any a checked option
---@return integer? limit bytes
---@return boolean kill end the command beyond it
function M.output_of(output)
  if type(output) == "table" then
    return output.limit, output.over == "kill"
  end
  return output or nil, false
end

--- The START message for a command. Raises for a wrong type.
---@param op string "exec" or "start"
---@param cmd string|string[]
---@param o table checked options
---@param plan table the session's
---@param flags table<string, boolean> further flags by name
---@return table? fields
---@return wovyr.Error? err "invalid" with field, "unsupported"
function M.fields(op, cmd, o, plan, flags)
  schema.argument(op, "cmd", cmd, "string|table")
  if o.secrets and #o.secrets > 0 then
    return nil, E.new("unsupported", op, "handing out secrets is not built in this version", {
      field = "secrets",
    })
  end
  if o.nice and (o.nice < 0 or o.nice > 19) then
    return invalid(op, "nice", "nice is 0 to 19")
  end
  local argv, env, ok, err
  argv, err = argv_of(op, cmd, o.shell or plan.shell)
  if not argv then
    return nil, err
  end
  local term = o.pty and o.pty ~= true and { TERM = o.pty.term } or {}
  env, err = env_of(op, term, plan.env, o.env or {})
  if not env then
    return nil, err
  end
  local bits = 0
  local function set(name, on)
    if on then
      bits = bits + FLAG[name]
    end
  end
  set("FOLLOW", flags.FOLLOW)
  set("OWNED", flags.OWNED)
  set("KILL_OUTPUT", flags.KILL_OUTPUT)
  set("MERGE", o.stderr == "merge")
  set("STDIN", o.stdin ~= nil)
  set("PTY", o.pty ~= nil)
  set("UMASK", o.umask ~= nil)
  local fields = {
    flags = bits,
    argv = argv,
    env = env,
    cwd = o.cwd or plan.cwd,
    user = o.user or plan.user,
    cpu_ms = o.cpu_time and units.ms(o.cpu_time) or nil,
    timeout_ms = o.timeout and math.max(units.ms(o.timeout), 1) or nil,
    output = o.output or nil,
    umask = o.umask,
    nice = o.nice,
    tag = o.tag,
    key = o.key,
    log_tail = o.log,
    keep_ms = o.keep and units.ms(o.keep) or nil,
  }
  if o.pty then
    fields.cols = o.pty == true and 80 or o.pty.cols
    fields.rows = o.pty == true and 24 or o.pty.rows
  end
  ok, err = check_texts(op, fields)
  if not ok then
    return nil, err
  end
  return fields
end

return M
