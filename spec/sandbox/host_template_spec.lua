-- The template `host`: what works of the host's own programs, as a table.

local S = require "spec.support.session"

-- { program, command, pattern that stdout must have }
local commands = {
  { "sh", "echo hello", "^hello" },
  { "bash", "bash -c 'echo $((6*7))'", "^42" },
  { "python3", "python3 -c 'print(6*7)'", "^42" },
  { "python3", "python3 -c 'import sqlite3; print(sqlite3.connect(\":memory:\").execute(\"select 42\").fetchone()[0])'", "^42" },
  { "python3", "python3 -c 'import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 50)'", "^True" },
  { "python3", "python3 -c 'import zoneinfo; print(zoneinfo.ZoneInfo(\"Europe/Berlin\"))'", "^Europe" },
  { "python3", "python3 -c 'import socket; print(socket.getfqdn(), socket.gethostbyname(\"localhost\"))'", "^wovyr 127%.0%.0%.1" },
  { "python3", "python3 -c 'import socket; print(socket.getservbyname(\"https\"))'", "^443" },
  { "python3", "python3 -c 'import getpass, os; print(getpass.getuser(), os.path.expanduser(\"~\"))'", "^user /home/user" },
  { "python3", "python3 -c 'import tempfile; print(tempfile.NamedTemporaryFile().name)'", "^/tmp/" },
  { "python3", "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-42])[0])'", "^42" },
  { "perl", "perl -e 'print 6*7'", "^42" },
  { "awk", "awk 'BEGIN { print 6*7 }'", "^42" },
  { "sed", "echo x | sed s/x/42/", "^42" },
  { "tar", "echo 42 > f; tar cf - f | tar xOf -", "^42" },
  { "gzip", "echo 42 | gzip | gunzip", "^42" },
  { "find", "touch a b; find . -type f | wc -l", "^2" },
  { "grep", "echo 42 | grep -o 42", "^42" },
  { "git", "git init -q . && touch f && git add f && git commit -qm x && git log --oneline | wc -l", "^1" },
  { "gcc", "echo 'int main(void){return 42;}' > m.c && gcc m.c -o m && ./m; echo $?", "^42" },
  { "make", "printf 'all:\\n\\techo 42\\n' > Makefile && make -s", "^42" },
  { "node", "node -e 'console.log(6*7)'", "^42" },
  { "lua5.4", "lua5.4 -e 'print(6*7)'", "^42" },
  { "openssl", "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout k -out c 2>/dev/null; head -1 c", "BEGIN CERT" },
  { "tmux", "tmux -L t new-session -d 'echo 42 > out; sleep 1' && sleep 0.5 && cat out", "^42" },
  { "vim", "vim -es -u NONE -c 'call writefile([\"42\"], \"o\")' -c q; cat o", "^42" },
  { "ps", "ps -e -o comm | head -2", "COMMAND" },
  { "top", "top -b -n 1 | head -1", "^top" },
  { "date", "TZ=Europe/Berlin date -d @0 +%H", "^01" },
  { "id", "id", "^uid=1000%(user%) gid=1000%(user%)" },
  { "hostname", "hostname -f", "^wovyr" },
  { "getent", "getent hosts localhost", "localhost" },
  { "nproc", "nproc", "^%d+\n" },
  { "df", "df -P /workspace | tail -1", "/workspace" },
  { "locale", "locale 2>&1 | grep LANG=", "LANG=C.UTF%-8" },
  { "cat", "cat /etc/os-release", "ID=" },
  { "ldconfig", "ldconfig -p | grep -c libc.so", "^%d" },
}

local function have(program)
  return os.execute("command -v /usr/bin/" .. program .. " >/dev/null 2>&1") == true
    or os.execute("command -v " .. program .. " >/dev/null 2>&1") == 0
end

describe("the template host", function()
  it("runs the programs of the host", S.session(function(s)
    local tried, failed = 0, {}
    for i, c in ipairs(commands) do
      if have(c[1]) then
        tried = tried + 1
        local dir = "t" .. i
        assert(s.files:mkdir(dir))
        local out = assert(s:exec(c[2], { cwd = dir, timeout = "60s" }))
        if not out.stdout:find(c[3]) then
          failed[#failed + 1] = c[2] .. "\n   " .. out:describe() .. " " .. out.stdout .. out.stderr
        end
      end
    end
    assert.same({}, failed)
    assert.truthy(tried >= 20, "only " .. tried .. " programs are on this host")
  end, { limits = { pids = 200 }, best_effort = { "pids" } }))

  it("gives a fresh machine-id to each session", S.runtime(function(rt)
    local a, b = S.open(rt), S.open(rt)
    local one, two = S.run(a, "cat /etc/machine-id"), S.run(b, "cat /etc/machine-id")
    assert.truthy(one:match("^" .. ("%x"):rep(32) .. "\n$"))
    assert.not_equal(one, two)
  end))

  it("holds nothing of the host that is not on its list", S.session(function(s)
    S.run(s, "! test -e /etc/shadow && ! test -e /etc/ssh && ! test -e /etc/hostname-of-host "
      .. "&& ! test -e /var/lib/dpkg && ! test -e /sys/kernel && ! test -e /boot")
    assert.equal("root\nuser\n", S.run(s, "cut -d: -f1 /etc/passwd | grep -v nobody"))
    -- Nobody answers there: a lookup fails at once instead of timing out.
    assert.equal("nameserver 127.0.0.1\n", S.run(s, "grep nameserver /etc/resolv.conf"))
  end))
end)
