-- sabotage.lua - break one thing of wovyr before a program is run, to see that it notices
--
--     SABOTAGE=stream lua5.4 -l spec.support.sabotage examples/demo.lua

local wovyr = require "wovyr"
local Session = require("wovyr.session").Session

-- Commands are told apart by a word in them.
local function text_of(cmd)
  return type(cmd) == "table" and table.concat(cmd, " ") or cmd
end

-- Replace the Outcome of commands that contain `word`.
local function outcome(word, change)
  local exec = Session.exec
  Session.exec = function(self, cmd, opts)
    local out, err = exec(self, cmd, opts)
    if out and text_of(cmd):find(word, 1, true) then change(out) end
    return out, err
  end
end

local breakers = {
  decision = function()
    wovyr.sandbox = function() return nil, "no decision" end
  end,
  open = function()
    Session.state = function() return "lost" end
  end,
  upload = function()
    outcome("packages.py", function(out) out.ok, out.exit_code = false, 1 end)
  end,
  stream = function()
    local exec = Session.exec
    Session.exec = function(self, cmd, opts)
      if opts and opts.on_stdout then
        local one, callback, parts = {}, opts.on_stdout, {}
        for key, value in pairs(opts) do one[key] = value end
        one.on_stdout = function(data) parts[#parts + 1] = data end
        local out, err = exec(self, cmd, one)
        callback(table.concat(parts))
        return out, err
      end
      return exec(self, cmd, opts)
    end
  end,
  state = function()
    outcome("ls -l", function(out) out.ok, out.exit_code = false, 2 end)
  end,
  server = function()
    outcome("urlopen", function(out) out.stdout = "" end)
  end,
  network = function()
    outcome("1.1.1.1", function(out) out.stdout = "REACHED" end)
  end,
  secret = function()
    outcome("/etc/shadow", function(out) out.stdout = "root:x" end)
  end,
  oom = function()
    outcome("8 << 20", function(out) out.cause = "exited" end)
  end,
  after = function()
    outcome("still here", function(out) out.stdout = "" end)
  end,
  results = function()
    local Files = require("wovyr.files").Files
    Files.read = function() return '{"packages": 1}' end
  end,
  close = function()
    Session.kill = function() return nil, "not killed" end
  end,
}

local name = os.getenv("SABOTAGE")
if name == "list" then
  for key in pairs(breakers) do print(key) end
  os.exit(0)
elseif name then
  breakers[name]()
end
