-- report.lua - busted output: a line per spec file, failures in full, totals at the end
--
-- The totals ("passed failed skipped") also go to $WOVYR_SPEC_TOTALS, for scripts/spec.sh.
-- SPDX-License-Identifier: MIT

local SLOW = 10 -- seconds; a test over it is named

return function()
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local total = { passed = 0, failed = 0, skipped = 0 }
  local file

  local function say(...)
    io.write(...)
    io.write("\n")
    io.flush()
  end

  local function count(what)
    total[what] = total[what] + 1
    if file then
      file[what] = file[what] + 1
    end
  end

  local function failed(name, message)
    count "failed"
    say("  not ok  ", name, "\n          ", (tostring(message):gsub("\n", "\n          ")))
  end

  busted.subscribe({ "file", "start" }, function(element)
    file = { name = element.name, passed = 0, failed = 0, skipped = 0, start = busted.monotime() }
    return nil, true
  end)

  busted.subscribe({ "test", "end" }, function(element, _, status)
    local seconds = element.duration or 0
    if status == "success" then
      count "passed"
    elseif status == "pending" then
      count "skipped"
      local last = handler.pendings[#handler.pendings]
      say("  skip    ", handler.getFullName(element), ": ",
        (tostring(last and last.message or ""):gsub("^[^\n]-:%d+: ", "")))
    else
      local list = status == "error" and handler.errors or handler.failures
      failed(handler.getFullName(element), list[#list] and list[#list].message)
    end
    if seconds > SLOW then
      say(("  slow    %s: %.1f s"):format(handler.getFullName(element), seconds))
    end
    return nil, true
  end)

  busted.subscribe({ "error" }, function(element, _, message)
    if element.descriptor ~= "it" then
      failed(element.name or element.descriptor, message)
    end
    return nil, true
  end)

  busted.subscribe({ "failure" }, function(element, _, message)
    if element.descriptor ~= "it" then
      failed(element.name or element.descriptor, message)
    end
    return nil, true
  end)

  busted.subscribe({ "file", "end" }, function()
    say(("%s  %s: %d passed%s%s, %.1f s"):format(file.failed == 0 and "ok    " or "not ok",
      file.name, file.passed, file.failed > 0 and (", " .. file.failed .. " failed") or "",
      file.skipped > 0 and (", " .. file.skipped .. " skipped") or "",
      busted.monotime() - file.start))
    file = nil
    return nil, true
  end)

  busted.subscribe({ "exit" }, function()
    local path = os.getenv "WOVYR_SPEC_TOTALS"
    if path and path ~= "" then
      local out = assert(io.open(path, "w"))
      out:write(total.passed, " ", total.failed, " ", total.skipped, "\n")
      out:close()
    end
    return nil, true
  end)

  return handler
end
