--- files.lua - a session's files. Paths are the sandbox's: relative ones start at its cwd, "~" is
-- the user's home, and every call acts with that user's rights.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local options = require "wovyr.options"
local schema = require "wovyr.schema"
local sender = require "wovyr.sender"
local stream = require "wovyr.stream"
local task = require "wovyr.task"
local units = require "wovyr.units"

local M = {}

local PATIENCE = 60    -- for an answer
local TRANSFER = 600   -- for moving content
local PATH_MAX = 4095
local NAME_MAX = 255
local CHUNK = 1048576
local PIECE = 262144

local TYPE = { "file", "directory", "symlink", "fifo", "socket", "char", "block" }
local PUT = { ATOMIC = 1, APPEND = 2, PARENTS = 4, IF_VERSION = 8, MODE = 16, SYNC = 32 }

---@class wovyr.Files
local Files = {}
Files.__index = Files
Files.__name = "wovyr.Files"
M.Files = Files

---@param session wovyr.Session
---@return wovyr.Files
function M.new(session)
  -- The session holds its files: a strong reference back would be a cycle, which is fine.
  return setmetatable({ session = session }, Files)
end

---@class wovyr.Stat
---@field name string
---@field path string
---@field type "file"|"directory"|"symlink"|"fifo"|"socket"|"char"|"block"
---@field size integer
---@field mode string "0644"
---@field user string
---@field group string
---@field mtime number seconds since the epoch
---@field target? string of a symlink
---@field version string opaque; changes when the file does

local function stat_of(f)
  return {
    name = f.path:match("([^/]+)/*$") or f.path,
    path = f.path,
    type = TYPE[f.type] or "unknown",
    size = f.size,
    mode = units.mode_text(f.mode),
    user = f.user,
    group = f.group,
    mtime = f.mtime_us / 1e6,
    target = f.target ~= "" and f.target or nil,
    version = f.version,
  }
end

local function check_path(op, path, field)
  schema.argument(op, field or "path", path, "string")
  local message
  if path == "" then
    message = "the path is empty"
  elseif path:find("\0", 1, true) then
    message = "the path contains a zero byte"
  elseif #path > PATH_MAX then
    message = ("the path is longer than %d bytes"):format(PATH_MAX)
  else
    for name in path:gmatch("[^/]+") do
      if #name > NAME_MAX then
        message = ("a name in the path is longer than %d bytes"):format(NAME_MAX)
      end
    end
  end
  if message then
    return nil, E.new("invalid", op, message, {
      field = field or "path",
      value = #path <= 256 and path or path:sub(1, 253) .. "...",
    })
  end
  return true
end

-- What the agent calls a field, as the caller named it.
local FIELD = { version = "if_version", name = "path", [""] = "path" }

-- Errors that are about the path when they do not say so.
local about_path = {
  not_found = true, denied = true, exists = true, conflict = true, invalid = true,
}

-- Name operation and path in every error.
local function explain(err, op, path)
  if err.field then
    err.field = FIELD[err.field] or err.field
  elseif about_path[err.code] then
    err.field = "path"
  end
  if path and #path <= 256 and not err.message:find(path, 1, true) then
    err.message = err.message .. ": " .. path
  end
  err.op, err.path = op, path
  return err
end

-- The fields that every request has, or an error.
function Files:request(op, path, o, more)
  local ok, err = check_path(op, path)
  if not ok then
    return nil, err
  end
  local state = self.session.handle
  err = state:refuse(op)
  if err then
    return nil, err
  end
  local fields = more or {}
  fields.path, fields.cwd = path, state.plan.cwd
  fields.user = o.user or state.plan.user
  if fields.user and (#fields.user > 63 or fields.user:find("\0", 1, true)) then
    return nil, E.new("invalid", op, "not a user name", { field = "user" })
  end
  return fields
end

function Files:ask(op, name, path, o, more, effect)
  local fields, err = self:request(op, path, o, more)
  if not fields then
    return nil, err
  end
  local state = self.session.handle
  local answer, got, fd, fd_err = state.conn:ask(op, name, fields, {
    deadline = clock.deadline(o.timeout or PATIENCE),
    effect = effect,
  })
  if not answer then
    return nil, explain(state:why(got, op), op, path)
  end
  return answer, nil, fd, fd_err
end

function Files:open_file(op, path, o)
  local answer, err, file, file_err = self:ask(op, "OPEN_FILE", path, o, nil, false)
  if not answer then
    return nil, err
  elseif not file then
    return nil, explain(E.adopt(file_err or "no descriptor came", op), op, path)
  end
  return file, answer
end

local function read_error(op, path, err)
  return nil, explain(E.adopt(err, op), op, path)
end

--- Read a file, or `length` bytes of it from `offset` on.
---@param path string
---@param o? { offset: integer, length: integer, max: integer|string, user: string, timeout: any }
---@return string? data bytes
---@return wovyr.Stat|wovyr.Error stat or err: "not_found", "denied", "limit" (more than max)
function Files:read(path, o)
  o = schema.check(options.read, o, "read")
  if o.offset < 0 or (o.length and o.length < 0) then
    E.misuse("read", "offset and length are not negative", { field = "offset" })
  end
  local file, f = self:open_file("read", path, o)
  if not file then
    return nil, f
  end
  local stat = stat_of(f)
  local wanted = o.length or math.max(f.size - o.offset, 0)
  local parts, have, at = {}, 0, o.offset
  local err
  while have <= o.max do
    local n = o.length and wanted - have or math.max(wanted - have, CHUNK / 16)
    n = math.min(n, o.max + 1 - have)
    if n <= 0 then
      break
    end
    local data
    data, err = file:read(at, n)
    if not data or data == "" then
      break
    end
    parts[#parts + 1] = data
    have, at = have + #data, at + #data
  end
  file:close()
  if err then
    return read_error("read", path, err)
  elseif have > o.max then
    return nil, explain(E.new("limit", "read", "the file is larger than max", {
      field = "max",
      value = o.max,
      hint = "read parts by offset and length, or download it",
    }), "read", path)
  end
  return #parts == 1 and parts[1] or table.concat(parts), stat
end

--- The content of a file, piece by piece.
---@param path string
---@param o? { offset: integer, length: integer, user: string, timeout: number|string }
---@return wovyr.Stream? stream of bytes
---@return wovyr.Stat|wovyr.Error stat or err
function Files:reader(path, o)
  o = schema.check(options.reader, o, "reader")
  if o.offset < 0 or (o.length and o.length < 0) then
    E.misuse("reader", "offset and length are not negative", { field = "offset" })
  end
  local file, f = self:open_file("reader", path, o)
  if not file then
    return nil, f
  end
  local at, rest = o.offset, o.length or math.huge
  return stream.new {
    session = self.session,
    next = function()
      if rest <= 0 then
        return nil
      end
      local data, err = file:read(at, math.min(rest, PIECE))
      if not data then
        return read_error("reader", path, err)
      elseif data == "" then
        return nil
      end
      at, rest = at + #data, rest - #data
      return data
    end,
    close = function()
      file:close()
    end,
  }, stat_of(f)
end

-- PUT with the content that source() gives, piece by piece.
function Files:put(op, path, o, source)
  local flags = 0
  local function set(name, on)
    if on then
      flags = flags + PUT[name]
    end
  end
  set("ATOMIC", o.atomic and not o.append)
  set("APPEND", o.append)
  set("PARENTS", o.parents)
  set("IF_VERSION", o.if_version ~= nil)
  set("MODE", o.mode ~= nil)
  if o.xattr and next(o.xattr) then
    return nil, E.new("unsupported", op, "extended attributes are not built in this version", {
      field = "xattr",
    })
  end
  local fields, err = self:request(op, path, o, {
    flags = flags,
    mode = o.mode,
    owner = o.owner,
    version = o.if_version or nil,
  })
  if not fields then
    return nil, err
  end
  local state = self.session.handle
  local deadline = clock.deadline(o.timeout or TRANSFER)
  local call
  call, err = state.conn:call(op, "PUT", fields, { deadline = deadline })
  if not call then
    return nil, explain(state:why(err, op), op, path)
  end
  local out = sender.new(call, "PUT_DATA", "PUT_END")
  out.signal = call.signal
  local function give_up(why)
    -- Until PUT_END went out, cancelling leaves nothing; after it, nobody knows.
    if out.finished and not call.closed and not call.err then
      why = E.new("unknown_outcome", op, "sent, and not answered in time", { cause = why })
    end
    out:stop(why)
    call:drop()
    state.conn:flush()
    return nil, explain(state:why(why, op), op, path)
  end
  while true do
    local name, f = call:take()
    if name == "STATED" then
      return stat_of(f)
    elseif name == "ERROR" then
      return nil, explain(E.from_message(f, op), op, path)
    elseif call.err then
      return give_up(call.err)
    elseif call.closed or name then
      return give_up(E.new("protocol", op, "unexpected answer"))
    elseif not out.finishing and out:idle() then
      local data, source_err = source()
      if source_err then
        return give_up(source_err)
      elseif data then
        out:push(data)
      else
        out:finish()
      end
    else
      local ok
      ok, err = task.wait(call.signal, deadline, op)
      if not ok and call.first > call.last and not call.err then
        return give_up(err)
      end
    end
  end
end

--- Write a whole file: a reader sees the old one or the new one.
---@param path string
---@param data string
---@param o? table if_version, append, atomic, mode, owner, parents, user, timeout
---@return wovyr.Stat? stat
---@return wovyr.Error? err "conflict" (another version), "exists", "denied", "limit" (full)
function Files:write(path, data, o)
  schema.argument("write", "data", data, "string")
  o = schema.check(options.write, o, "write")
  local rest = data
  return self:put("write", path, o, function()
    local piece = rest
    rest = nil
    return piece
  end)
end

--- What a path is.
---@param path string
---@param o? { follow: boolean, user: string, timeout: number|string }
---@return wovyr.Stat? stat
---@return wovyr.Error? err "not_found", "denied", ...
function Files:stat(path, o)
  o = schema.check(options.stat, o, "stat")
  local f, err = self:ask("stat", "STAT", path, o, { follow = o.follow and 1 or 0 }, false)
  if not f then
    return nil, err
  end
  return stat_of(f)
end

--- Whether there is something at path.
---@param path string
---@param o? { user: string, timeout: number|string }
---@return boolean? exists
---@return wovyr.Error? err it cannot be told
function Files:exists(path, o)
  o = schema.check(options.file, o, "exists")
  local f, err = self:ask("exists", "STAT", path, o, { follow = 1 }, false)
  if f then
    return true
  elseif err.code == "not_found" and err.field ~= "user" then
    return false
  end
  return nil, err
end

--- The entries of a directory, in a stable order, a page at a time.
---@param dir string
---@param o? { depth: integer, glob: string, limit: integer, after: string, user: string }
---@return wovyr.Stat[]? entries
---@return string|wovyr.Error|nil next the cursor of the next page, or err
function Files:list(dir, o)
  o = schema.check(options.list, o, "list")
  local fields, err = self:request("list", dir, o, {
    depth = o.depth,
    limit = o.limit,
    glob = o.glob,
    after = o.after,
  })
  if not fields then
    return nil, err
  end
  local state = self.session.handle
  local deadline = clock.deadline(o.timeout or PATIENCE)
  local call
  call, err = state.conn:call("list", "LIST", fields, { deadline = deadline })
  if not call then
    return nil, explain(state:why(err, "list"), "list", dir)
  end
  local entries = {}
  while true do
    local name, f = call:next(deadline)
    if not name then
      call:drop()
      return nil, explain(state:why(f, "list"), "list", dir)
    elseif name ~= "ENTRY" then
      return entries, f.after and f.after ~= "" and f.after or nil
    end
    entries[#entries + 1] = stat_of(f)
  end
end

--- Make a directory; with parents, also the missing ones above it, and one that is there is fine.
---@param path string
---@param o? { parents: boolean, mode: string, user: string, timeout: number|string }
---@return wovyr.Stat|boolean|nil stat
---@return wovyr.Error? err "exists", "not_found", "denied"
function Files:mkdir(path, o)
  o = schema.check(options.mkdir, o, "mkdir")
  local f, err = self:ask("mkdir", "MKDIR", path, o, {
    parents = o.parents and 1 or 0,
    mode = o.mode or 493, -- 0755
  }, true)
  if not f then
    return nil, err
  end
  return f.path and stat_of(f) or true
end

--- Move a file or a tree; what was at `to` goes.
---@param path string
---@param to string
---@param o? { if_version: string|false, parents: boolean, user: string, timeout: any }
---@return wovyr.Stat|boolean|nil stat
---@return wovyr.Error? err "not_found", "conflict", "denied"
function Files:rename(path, to, o)
  o = schema.check(options.rename, o, "rename")
  local ok, err = check_path("rename", to, "to")
  if not ok then
    return nil, err
  end
  local f
  f, err = self:ask("rename", "RENAME", path, o, {
    to = to,
    parents = o.parents and 1 or 0,
    guarded = o.if_version ~= nil and 1 or 0,
    version = o.if_version or nil,
  }, true)
  if not f then
    return nil, err
  end
  return f.path and stat_of(f) or true
end

--- Remove a file or an empty directory; with recursive, a whole tree.
---@param path string
---@param o? { recursive: boolean, if_version: string, user: string, timeout: any }
---@return boolean? ok
---@return wovyr.Error? err "not_found", "conflict", "denied"
function Files:remove(path, o)
  o = schema.check(options.remove, o, "remove")
  local f, err = self:ask("remove", "REMOVE", path, o, {
    recursive = o.recursive and 1 or 0,
    guarded = o.if_version ~= nil and 1 or 0,
    version = o.if_version,
  }, true)
  if not f then
    return nil, err
  end
  return true
end

--- Copy a file of the host into the sandbox.
---@param host_path string
---@param path string
---@param o? table as of write
---@return wovyr.Stat? stat
---@return wovyr.Error? err
function Files:upload(host_path, path, o)
  schema.argument("upload", "host_path", host_path, "string")
  o = schema.check(options.write, o, "upload")
  local file, text, errno = io.open(host_path, "rb")
  if not file then
    return nil, E.from_io("upload", text, errno, { field = "host_path" })
  end
  local stat, err = self:put("upload", path, o, function()
    local data, read_text, read_errno = file:read(CHUNK)
    if read_errno then
      return nil, E.from_io("upload", read_text, read_errno, { field = "host_path" })
    end
    return data
  end)
  file:close()
  return stat, err
end

--- Copy a file of the sandbox to the host.
---@param path string
---@param host_path string
---@param o? { user: string, timeout: number|string }
---@return wovyr.Stat? stat
---@return wovyr.Error? err
function Files:download(path, host_path, o)
  schema.argument("download", "host_path", host_path, "string")
  o = schema.check(options.file, o, "download")
  local file, f = self:open_file("download", path, o)
  if not file then
    return nil, f
  end
  local ok, err = file:save(host_path)
  file:close()
  if not ok then
    return read_error("download", path, err)
  end
  return stat_of(f)
end

return M
