--- sender.lua - bytes on their way into a stream, as fast as the peer gives credit.
--
-- `pump` runs inside dispatch whenever bytes moved, so that what is queued goes on while the
-- caller waits for something else. It never waits.

local M = {}

local CHUNK = 65536

---@class wovyr.Sender
local Sender = {}
Sender.__index = Sender
Sender.__name = "wovyr.Sender"

--- Send on a call's stream with these message names (STDIN and STDIN_END, PUT_DATA and PUT_END).
---@param call wovyr.Call
---@param data_name string
---@param end_name string
---@return wovyr.Sender
function M.new(call, data_name, end_name)
  return setmetatable({
    conn = call.conn,
    call = call,
    data_name = data_name,
    end_name = end_name,
    queue = {},
    signal = call.conn.io.signal(),
  }, Sender)
end

--- Put data at the end of the queue.
---@param data string
---@return table entry entry.sent counts its bytes that went out
function Sender:push(data)
  local entry = { data = data, sent = 0 }
  if self.gone then
    return entry
  end
  if #data > 0 then
    self.queue[#self.queue + 1] = entry
  end
  self:pump()
  return entry
end

--- Take back what has not been sent of an entry.
function Sender:withdraw(entry)
  for i, other in ipairs(self.queue) do
    if other == entry then
      table.remove(self.queue, i)
      return
    end
  end
end

--- Nothing will be pushed any more: the end goes out behind the queue.
function Sender:finish()
  self.finishing = true
  self:pump()
end

--- The peer takes no more.
---@param err wovyr.Error
function Sender:stop(err)
  self.gone = self.gone or err
  self.queue = {}
  self.conn.senders[self.call.stream] = nil
  self.signal:fire()
end

--- Nothing is waiting to go out.
---@return boolean
function Sender:idle()
  return #self.queue == 0
end

function Sender:send_head(entry)
  local link, stream = self.conn.link, self.call.stream
  while entry.sent < #entry.data do
    local n = math.min(link:may_send(stream) or 0, CHUNK, #entry.data - entry.sent)
    if n <= 0 then
      return false
    end
    local chunk = entry.data
    if n < #chunk then
      chunk = chunk:sub(entry.sent + 1, entry.sent + n)
    end
    local ok, err = link:send(stream, self.data_name, { data = chunk })
    if not ok then
      if err.code ~= "again" then
        self:stop(err)
      end
      return false
    end
    entry.sent = entry.sent + n
  end
  return true
end

--- Send what may be sent now.
function Sender:pump()
  if self.gone or self.finished or self.conn.err or self.call.closed then
    self.conn.senders[self.call.stream] = nil
    return
  end
  local moved = false
  while #self.queue > 0 and self:send_head(self.queue[1]) do
    table.remove(self.queue, 1)
    moved = true
  end
  if self.gone then
    return
  end
  if #self.queue == 0 and self.finishing then
    local ok, err = self.conn.link:send(self.call.stream, self.end_name, {})
    self.finished = ok or err.code ~= "again"
  end
  local waiting = #self.queue > 0 or (self.finishing and not self.finished)
  self.conn.senders[self.call.stream] = waiting and self or nil
  if moved then
    self.signal:fire()
  end
end

return M
