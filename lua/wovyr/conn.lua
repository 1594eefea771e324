--- conn.lua - a link and the calls on it: who gets which message.
--
-- Theory of operation. The adaptor calls `dispatch` when bytes may have come; it hands every
-- message to the Call that opened the stream, and never runs a user's code or yields. Calls
-- queue their messages and fire a signal; whoever waits takes them. A call that nobody wants
-- any more is a drain: it goes on taking (and crediting) until the peer closes its stream.

local E = require "wovyr.error"
local clock = require "wovyr.clock"
local task = require "wovyr.task"

local M = {}

local TURN = 256 -- messages of one link before it is somebody else's turn
local VERSION = 1

-- Messages after which a stream is gone.
local closing = {
  OK = true, ERROR = true, END = true, EXIT = true, FILE = true, STATED = true, USED = true,
  SESSION_END = true,
}

---@class wovyr.Call one stream
local Call = {}
Call.__index = Call
Call.__name = "wovyr.Call"

--- A message came, or the connection ended (name "LOST").
function Call:take_in(name, fields, fd, fd_err)
  if self.draining then
    if name == "OUTPUT" then
      self.conn.link:consumed(self.stream, #fields.data)
    end
    if fd then
      fd:close()
    end
  elseif self.receive then
    self.receive(name, fields, fd, fd_err)
  else
    self.last = self.last + 1
    self.queue[self.last] = { name, fields, fd, fd_err }
  end
  self.signal:fire()
end

--- The next message if there is one.
---@return string? name
function Call:take()
  if self.first > self.last then
    return nil
  end
  local item = self.queue[self.first]
  self.queue[self.first] = nil
  self.first = self.first + 1
  return item[1], item[2], item[3], item[4]
end

--- The next message; an ERROR becomes `nil, err`.
---@param deadline number?
---@return string? name
---@return table fields or err
function Call:next(deadline)
  while true do
    local name, fields, fd, fd_err = self:take()
    if name == "ERROR" then
      return nil, E.from_message(fields, self.op)
    elseif name then
      return name, fields, fd, fd_err
    elseif self.err then
      return nil, self.err
    elseif self.closed then
      return nil, E.new("protocol", self.op, "the answer ended early")
    end
    local ok, err = task.wait(self.signal, deadline, self.op)
    if not ok and self.first > self.last and not self.err then
      return nil, err
    end
  end
end

--- Nobody wants the rest: tell the peer and drain what still comes. Never waits.
function Call:drop()
  if self.draining then
    return
  end
  self.draining = true
  while self.first <= self.last do
    local name, fields, fd = self:take()
    if name then
      if name == "OUTPUT" and not self.closed then
        self.conn.link:consumed(self.stream, #fields.data)
      end
      if fd then
        fd:close()
      end
    end
  end
  if not self.closed then
    self.conn:post(self.stream, "CANCEL", {})
  end
end

---@class wovyr.Conn
local Conn = {}
Conn.__index = Conn
Conn.__name = "wovyr.Conn"

--- Take over a link.
---@param io table the loop's adaptor
---@param link table a Link of wovyr.core
---@param receive fun(name: string, fields: table)? gets messages of the connection itself
---@return wovyr.Conn? conn
---@return wovyr.Error? err
function M.new(io, link, receive)
  local conn = setmetatable({
    io = io,
    link = link,
    receive = receive,
    calls = {},
    senders = {},
    posts = {},
    strays = 0,
    progress = io.signal(),
  }, Conn)
  local handle, err = io.open(nil, conn)
  if not handle then
    return nil, E.adopt(err, "open")
  end
  conn.handle = handle
  return conn
end

--- Open a stream; waits while the way out is full (o.try: answers "again" instead).
---@param op string
---@param name string message
---@param fields table
---@param o? { fd: any, deadline: number?, receive: function?, try: boolean? }
---@return wovyr.Call? call
---@return wovyr.Error? err
function Conn:call(op, name, fields, o)
  o = o or {}
  while not self.err do
    local stream, err = self.link:open(name, fields, o.fd)
    if stream then
      local call = setmetatable({
        conn = self, stream = stream, op = op, opener = name, receive = o.receive,
        queue = {}, first = 1, last = 0, signal = self.io.signal(),
      }, Call)
      self.calls[stream] = call
      return call
    elseif o.try or err.code ~= "again" then
      return nil, E.adopt(err, op)
    end
    local ok, wait_err = task.wait(self.progress, o.deadline, op)
    if not ok then
      return nil, wait_err
    end
  end
  return nil, self.err
end

--- One question, one answer.
---@param op string
---@param name string
---@param fields table
---@param o? { deadline: number?, effect: boolean? } effect: an unanswered one is not undone
---@return table? fields of the answer
---@return wovyr.Error|string err or the answer's name
---@return any fd
---@return any fd_err
function Conn:ask(op, name, fields, o)
  o = o or {}
  local call, err = self:call(op, name, fields, o)
  if not call then
    return nil, err
  end
  local answer, got, fd, fd_err = call:next(o.deadline)
  if not answer then
    if not call.closed and not call.err then
      call:drop()
      if o.effect then
        got = E.new("unknown_outcome", op, "sent, and not answered in time", { cause = got })
      end
    end
    return nil, got
  end
  return got, answer, fd, fd_err
end

--- Send a message without waiting: now, or as soon as there is room.
function Conn:post(stream, name, fields)
  if self.err then
    return
  end
  if #self.posts == 0 then
    local ok, err = self.link:send(stream, name, fields)
    if ok or err.code ~= "again" then
      return
    end
  end
  self.posts[#self.posts + 1] = { stream, name, fields }
end

--- Push bytes that are queued, without waiting for any.
function Conn:flush()
  if not self.err then
    self.link:step()
  end
end

function Conn:send_waiting()
  while #self.posts > 0 do
    local post = self.posts[1]
    local ok, err = self.link:send(post[1], post[2], post[3])
    if not ok and err.code == "again" then
      break
    end
    table.remove(self.posts, 1)
  end
  for _, sender in pairs(self.senders) do
    sender:pump()
  end
end

--- Hand out what has come. True when there is more to do at once.
---@return boolean more
function Conn:dispatch()
  local more = true
  for _ = 1, TURN do
    if self.err then
      return false
    end
    local stream, name, fields, fd, fd_err = self.link:next()
    if not stream then
      if name then
        self:lose(E.adopt(name, "wait"))
        return false
      end
      more = false
      break
    end
    if stream == 0 then
      self:on_connection(name, fields)
    elseif name ~= "CREDIT" then -- the link has booked it, and send_waiting makes use of it
      local call = self.calls[stream]
      if call then
        if closing[name] then
          self.calls[stream] = nil
          self.senders[stream] = nil
          call.closed = true
        end
        if name == "EXIT" and call.opener == "START" then
          self.strays = self.strays + (fields.strays or 0)
        end
        call:take_in(name, fields, fd, fd_err)
      elseif fd then
        fd:close()
      end
    end
  end
  if not self.err then
    self:send_waiting()
  end
  self.progress:fire()
  return more
end

function Conn:on_connection(name, fields)
  if name == "HELLO" and fields.version ~= VERSION then
    self:lose(E.new("protocol", "hello",
      ("the other side speaks version %d, not %d"):format(fields.version, VERSION)))
  elseif self.receive then
    self.receive(name, fields)
  end
end

--- The connection is over: every call ends with err.
---@param err wovyr.Error
function Conn:lose(err)
  if self.err then
    return
  end
  self.err = err
  local calls = self.calls
  self.calls, self.senders, self.posts = {}, {}, {}
  self.handle:close()
  self.link:close()
  if self.receive then
    self.receive("LOST", { err = err })
  end
  for _, call in pairs(calls) do
    call.err, call.closed = err, true
    if call.receive then
      call.receive("LOST", { err = err })
    end
    call.signal:fire()
  end
  self.progress:fire()
end

--- Wait until the call's stream is gone, for a short while and whatever else happens: after
--- a cancel, so that what it ran has ended when the caller goes on.
---@param seconds number
function Call:settle(seconds)
  local deadline = clock.deadline(seconds)
  while not self.closed and not self.err do
    if not self.signal:wait(deadline) then
      return
    end
  end
end

return M
