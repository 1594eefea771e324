---@meta wovyr
--- _meta.lua - the classes of wovyr.core, and the option tables, for editors and agents.
--
-- Never loaded. spec/unit/meta_spec.lua compares it with the metatables and the schemas, both
-- ways. The classes that Lua makes are annotated where they are.

---@class wovyr.core the C part
---@field BUILD string hex id of this build; the supervisor has the same
---@field VERSION string
---@field codes table number of an error code to its name, and back
local core = {}

--- Start a supervisor that belongs to this process. The host gets no child and no signal.
---@param o? { path: string } its executable, when it is not the usual one
---@return wovyr.Link? control
---@return wovyr.Error? err
function core.start(o) end

--- A new session connection: our end, and the one to send with OPEN.
---@return wovyr.Link? link
---@return wovyr.Fd|wovyr.Error theirs
function core.channel() end

--- A set of links to wait for.
---@return wovyr.Hub? hub
---@return wovyr.Error? err
function core.hub() end

--- A place for output, outside Lua's memory until it is taken.
---@param cap integer bytes; above it each stream keeps its first and last cap/8
---@return wovyr.Collector
function core.collector(cap) end

--- The metatable that errors from C get.
---@param mt table
function core.error_metatable(mt) end

--- Seconds that only go forward.
---@return number
function core.now() end

---@class wovyr.Link a connection to a supervisor or an agent
local Link = {}

--- Open a stream with a message.
---@param name string message, e.g. "START"
---@param fields? table by name; absent fields are 0 or ""
---@param fd? wovyr.Fd goes with it
---@return integer? stream
---@return wovyr.Error? err "again" (the way out is full), "capacity", "invalid", "closed", "lost"
function Link:open(name, fields, fd) end

--- Send a message on a stream; 0 is the connection itself.
---@param stream integer
---@param name string
---@param fields? table
---@return boolean? ok
---@return wovyr.Error? err "again" (no credit, or the way out is full), "closed", "lost"
function Link:send(stream, name, fields) end

--- Bytes of content that the stream may send now.
---@param stream integer
---@return integer? bytes
---@return wovyr.Error? err
function Link:may_send(stream) end

--- The receiver is done with n bytes of OUTPUT: the sender may go on.
---@param stream integer
---@param n integer
function Link:consumed(stream, n) end

--- The next message that has come; nothing when there is none.
---@return integer? stream
---@return string|wovyr.Error|nil name or how the connection ended
---@return table? fields
---@return wovyr.File? file of a FILE message
---@return wovyr.Error? err why there is no file
function Link:next() end

--- Keep the stream's OUTPUT outside Lua from now on, and credit it.
---@param stream integer
---@param cap integer bytes
---@return wovyr.Collector? collector
---@return wovyr.Error? err
function Link:collect(stream, cap) end

--- A value whose collection ends the stream.
---@param stream integer
---@return wovyr.Guard? guard
---@return wovyr.Error? err
function Link:guard(stream) end

--- Read and write what goes without waiting.
---@return boolean? more there is something to take
---@return wovyr.Error? err
function Link:step() end

--- Send what still fits, then close. Never waits.
function Link:close() end

---@return boolean closed
---@return string? code why
function Link:closed() end

---@return integer? fd
---@return wovyr.Error? err
function Link:pollfd() end

---@return string? events "r" or "rw"
---@return wovyr.Error? err
function Link:events() end

---@return integer? seconds 0 when something waits that the descriptor does not show
function Link:timeout() end

---@class wovyr.Hub
local Hub = {}

---@param link wovyr.Link
---@return boolean? ok
---@return wovyr.Error? err
function Hub:add(link) end

---@param link wovyr.Link
---@return boolean ok
function Hub:remove(link) end

--- Move bytes without waiting.
---@return integer? ready links with something to take
---@return wovyr.Error? err
function Hub:step() end

--- Wait until bytes can move, and move them. A signal ends it early.
---@param seconds? number
---@return integer? ready
---@return wovyr.Error? err
function Hub:wait(seconds) end

---@return integer? fd of epoll
---@return wovyr.Error? err
function Hub:pollfd() end

---@return string events
function Hub:events() end

---@return integer? seconds
function Hub:timeout() end

function Hub:close() end

---@class wovyr.Collector
local Collector = {}

---@param source integer 1 stdout, 2 stderr, 3 terminal
---@param data string
function Collector:add(source, data) end

--- All that was kept; it is empty then.
---@return string stdout
---@return string stderr
---@return integer missing_out
---@return integer missing_err
---@return integer gap bytes that never came here
function Collector:take() end

---@return integer bytes that came since the last take, kept or not
function Collector:bytes() end

function Collector:close() end

---@class wovyr.File a file of the sandbox, read by position, never mapped
local File = {}

---@param offset integer
---@param n integer
---@return string? data shorter than n only at the end, "" there
---@return wovyr.Error? err
function File:read(offset, n) end

---@return integer? bytes
---@return wovyr.Error? err
function File:size() end

---@param host_path string
---@param max? integer bytes
---@return boolean? ok
---@return wovyr.Error? err
function File:save(host_path, max) end

function File:close() end

---@class wovyr.Guard
local Guard = {}

--- End the stream now: CLOSE for a session, CANCEL for others.
function Guard:close() end

--- Let it be.
function Guard:disarm() end

---@class wovyr.Fd
local Fd = {}

---@return integer? fd
---@return wovyr.Error? err
function Fd:number() end

function Fd:close() end

---@class wovyr.Spec
---@field profile? string named in the configuration
---@field template? string "host", or one that was built
---@field trust? "first_party"|"verified"|"untrusted" how far the code is known; absent: untrusted
---@field backend? string the weakest one wanted: "container", ...
---@field floor? string the weakest one allowed
---@field metadata? table<string, string> your own words, found by list
---@field mounts? { host: string, path: string, mode: "ro"|"rw" }[]
---@field best_effort? string[] limits that may go unenforced
---@field limits? wovyr.Limits the session's
---@field exec? { timeout: any, cpu_time: any, output: any } each command's
---@field egress? string|table who may be talked to; absent: nobody
---@field idle_ttl? number|string|false end after this long without use
---@field lifetime? number|string|false end after this long
---@field on_expire? "kill"|"pause"
---@field cwd? string
---@field user? string
---@field env? table<string, string>
---@field shell? string[] argv before a command that is a string
---@field secrets? string[] names from the configuration

---@class wovyr.Limits
---@field memory? integer|string of all processes and files in RAM
---@field cpus? number CPUs' worth of time
---@field pids? integer processes and threads at once
---@field disk? integer|string of the session's one writable store
---@field nofile? integer open descriptors of each process

---@class wovyr.ExecOpts
---@field timeout? number|string|false the command's life; false is none
---@field cpu_time? number|string CPU time of its whole tree
---@field output? any bytes kept ("16M"), { limit, over = "truncate"|"kill" }, or false
---@field cwd? string directory inside, /workspace when absent
---@field user? string name or uid inside
---@field env? table<string, string>
---@field shell? string[]
---@field secrets? string[]
---@field stdin? string|function|true bytes, a source of bytes, or (start) p:write
---@field stderr? "merge"
---@field nice? integer 0 to 19
---@field umask? string "0022"
---@field on_stdout? fun(data: string) in the caller's coroutine; raising ends the command
---@field on_stderr? fun(data: string)

---@class wovyr.StartOpts : wovyr.ExecOpts
---@field pty? true|{ cols: integer, rows: integer, term: string } a terminal
---@field tag? string a name to attach by
---@field key? string the same key gives the same process
---@field log? integer|string last bytes of output to keep
---@field keep? number|string how long an ended process is remembered

return {}
