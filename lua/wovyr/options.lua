--- options.lua - every option table of the library, as data for the schema checker.

local M = {}

local function join(...)
  local all = {}
  for _, fields in ipairs { ... } do
    for _, def in ipairs(fields) do
      all[#all + 1] = def
    end
  end
  return all
end

M.levels = { "native", "wasi", "container", "gvisor", "microvm", "kubernetes" }
M.trust = { "first_party", "verified", "untrusted" }

M.limits = {
  { name = "memory", type = "size", doc = "of all processes and files in RAM" },
  { name = "cpus", type = "cpus", doc = "CPUs' worth of time, 0.5 is half of one" },
  { name = "pids", type = "count", doc = "processes and threads at once" },
  { name = "disk", type = "size", doc = "of the session's one writable store" },
  { name = "nofile", type = "count", doc = "open descriptors of each process" },
}

local exec_limits = {
  { name = "timeout", type = "duration|false", doc = "the command's life; false is none" },
  { name = "cpu_time", type = "duration", doc = "CPU time of the command's whole tree" },
  { name = "output", type = "size|false", doc = "bytes kept of what it prints", fields = {
    { name = "limit", type = "size", default = "16M" },
    { name = "over", values = { "truncate", "kill" }, default = "truncate",
      doc = "beyond it the middle is cut, or the command ends" },
  } },
}

local place = {
  { name = "cwd", type = "string", doc = "directory inside, /workspace when absent" },
  { name = "user", type = "string", doc = "name or uid inside" },
  { name = "env", type = "map", doc = "environment variables" },
  { name = "shell", type = "strings", doc = "argv before a command that is a string" },
  { name = "secrets", type = "strings", doc = "names from the configuration" },
}

local rule_or_name = "string|table"

M.spec = join({
  { name = "profile", type = "string", doc = "named in the configuration" },
  { name = "template", type = "string", doc = "what the root looks like" },
  { name = "trust", values = M.trust, doc = "how far the code is known" },
  { name = "backend", values = M.levels, doc = "the weakest one wanted" },
  { name = "floor", values = M.levels, doc = "the weakest one allowed" },
  { name = "metadata", type = "map", doc = "your own words, found by list" },
  { name = "mounts", type = "table", doc = "{ { host, path, mode } }" },
  { name = "best_effort", type = "strings", doc = "limits that may go unenforced" },
  { name = "limits", fields = M.limits, doc = "the session's" },
  { name = "exec", fields = exec_limits, doc = "each command's" },
  { name = "egress", type = rule_or_name, doc = "who may be talked to" },
  { name = "idle_ttl", type = "duration|false", doc = "end after this long without use" },
  { name = "lifetime", type = "duration|false", doc = "end after this long" },
  { name = "on_expire", values = { "kill", "pause" }, doc = "what the end is" },
}, place)

local wait_option = { { name = "timeout", type = "duration", doc = "patience" } }

M.open = join(wait_option, {
  { name = "key", type = "string", doc = "the same key gives the same session" },
  { name = "detached", type = "boolean", doc = "outlive the connection; service only" },
})

local process = join(exec_limits, place, {
  { name = "stdin", type = "string|function|true", doc = "bytes, a source of bytes, or p:write" },
  { name = "stderr", values = { "merge" }, doc = "send stderr where stdout goes" },
  { name = "nice", type = "integer", doc = "0 to 19" },
  { name = "umask", type = "mode", doc = "like \"0022\"" },
  { name = "on_stdout", type = "function", doc = "fn(data), in the caller's coroutine" },
  { name = "on_stderr", type = "function", doc = "fn(data), in the caller's coroutine" },
})

M.exec = process

M.pty = {
  { name = "cols", type = "count", default = 80 },
  { name = "rows", type = "count", default = 24 },
  { name = "term", type = "string", default = "xterm-256color" },
}

M.start = join(process, {
  { name = "pty", type = "true", fields = M.pty, doc = "a terminal" },
  { name = "tag", type = "string", doc = "a name to attach by" },
  { name = "key", type = "string", doc = "the same key gives the same process" },
  { name = "log", type = "size", doc = "last bytes of output to keep" },
  { name = "keep", type = "duration", doc = "how long an ended process is remembered" },
})

M.wait = wait_option

M.signal = join(wait_option, {
  { name = "to", values = { "group", "leader", "tree" }, default = "group" },
})

M.kill = join(wait_option, {
  { name = "grace", type = "duration", default = 0, doc = "between TERM and KILL" },
})

M.output = {
  { name = "from", type = "integer", default = 0, doc = "offset of the first byte wanted" },
  { name = "lossless", type = "boolean", default = false, doc = "make the writer wait for us" },
}

local file = join(wait_option, {
  { name = "user", type = "string", doc = "acts with this user's rights" },
})

M.file = file

M.read = join(file, {
  { name = "offset", type = "integer", default = 0 },
  { name = "length", type = "integer" },
  { name = "max", type = "size", default = "64M", doc = "more than this is an error" },
})

M.reader = join(file, {
  { name = "offset", type = "integer", default = 0 },
  { name = "length", type = "integer" },
})

M.write = join(file, {
  { name = "if_version", type = "string|false", doc = "only if it is this one; false: absent" },
  { name = "append", type = "boolean", default = false },
  { name = "atomic", type = "boolean", default = true, doc = "old or new, never half" },
  { name = "mode", type = "mode" },
  { name = "owner", type = "string" },
  { name = "parents", type = "boolean", default = true, doc = "make missing directories" },
  { name = "xattr", type = "map" },
})

M.stat = join(file, { { name = "follow", type = "boolean", default = true } })

M.list = join(file, {
  { name = "depth", type = "count", default = 1 },
  { name = "glob", type = "string" },
  { name = "limit", type = "count", default = 1000 },
  { name = "after", type = "string", doc = "the cursor of the page before" },
})

M.mkdir = join(file, {
  { name = "parents", type = "boolean", default = false },
  { name = "mode", type = "mode" },
})

M.rename = join(file, {
  { name = "if_version", type = "string|false" },
  { name = "parents", type = "boolean", default = false },
})

M.remove = join(file, {
  { name = "recursive", type = "boolean", default = false },
  { name = "if_version", type = "string" },
})

M.runtime = {
  { name = "service", type = "string", doc = "socket of a running service" },
  { name = "token", type = "string" },
  { name = "tenant", type = "string" },
  { name = "config", type = "string|table", doc = "file or table of defaults and profiles" },
  { name = "loop", values = { "poll", "luv", "cqueues", "ngx" } },
}

M.sessions = join(wait_option, {
  { name = "metadata", type = "map" },
  { name = "state", type = "string" },
  { name = "template", type = "string" },
  { name = "started_after", type = "number" },
  { name = "order", values = { "oldest", "newest" }, default = "oldest" },
  { name = "limit", type = "count", default = 1000 },
  { name = "after", type = "string" },
})

M.all = join(wait_option, { { name = "limit", type = "count", doc = "running at once" } })

M.template = {
  { name = "name", type = "string" },
  { name = "base", doc = "{ tree = directory } or { tar = file }", fields = {
    { name = "tree", type = "string", doc = "absolute path of a root file system" },
    { name = "tar", type = "string", doc = "absolute path of one, packed" },
  } },
}

M.build = join(wait_option, {
  { name = "on_log", type = "function" },
  { name = "offline", type = "boolean" },
  { name = "no_cache", type = "boolean" },
})

M.templates = join(wait_option, { { name = "kind", type = "string" } })

return M
