"""Runs programs under rules made at random: nothing that they print may change.

    random_rules.py LIBRARY SEEDS FOLDER    with the programs that the step `rules` has built in FOLDER

Each program is run without the library, then learned from, which gives the call sites of all its
processes, and then run with SEEDS files of rules: any place, policy, size and caller, hostile offsets.
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

ARM = os.uname().machine == "aarch64"
PLACES = [f"x{number}" for number in range(19, 29)] if ARM else ["rbx", "rbp", "r12", "r13", "r14", "r15"]
STACK = "sp" if ARM else "rsp"
SITE = re.compile(r"^(?:# )?\+([0-9a-f]+) size (\d+)")

REDIS = """set -eu; cd "$FOLDER"; rm -f redis.sock
redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --daemonize no >/dev/null & server=$!
for i in {1..100}; do [ -S redis.sock ] && redis-cli -s redis.sock ping >/dev/null 2>&1 && break; sleep 0.05; done
for i in {1..300}; do echo "SET key:$i value:$((i * i))"; echo "LPUSH list $i"; echo "ZADD set $((i % 7)) $i"
    echo "HSET hash f$i $i"; done | redis-cli -s redis.sock | sort | uniq -c
redis-cli -s redis.sock SORT list LIMIT 0 9; redis-cli -s redis.sock ZRANGE set 0 9 WITHSCORES
redis-cli -s redis.sock HGET hash f77; redis-cli -s redis.sock SHUTDOWN NOSAVE; wait $server"""
LUA = """local t, s = {}, 7
for i = 1, 20000 do s = (s * 1103515245 + 12345) % 2147483648; t[i] = {key = "k" .. s % 997, value = s} end
table.sort(t, function(a, b) return a.value < b.value end)
local n = 0; for i, v in ipairs(t) do n = (n * 31 + #v.key + v.value) % 1000003 end; print(n)
print(#string.rep("ab", 1000):gsub("a", "xyz"))"""
TCL = """set d [dict create]; for {set i 0} {$i < 5000} {incr i} {dict lappend d [expr {$i % 37}] "item $i"}
puts [string length $d]; puts [llength [lsort -unique [concat {*}[dict values $d]]]]"""
SHELL = {
    "python3": "PYTHONMALLOC=malloc python3 .ci/programs/words.py",
    "gcc -S": "gcc -O2 -S -o - ccmalloc/capi/tests/family.c",
    "c++ -S": "c++ -std=c++17 -O1 -S -o - -Iccmalloc/capi/include ccmalloc/capi/examples/containers.cpp",
    "cc and ld": "cc -O2 ccmalloc/capi/tests/learn/truth.c -o $FOLDER/made && cksum <$FOLDER/made",
    "sqlite3": "sqlite3 :memory: '.read .ci/programs/table.sql'",
    "perl": "PERL_HASH_SEED=0 perl .ci/programs/words.pl",
    "git": "bash .ci/programs/history.sh $FOLDER",
    "pipes": "bash .ci/programs/pipes.sh",
    "ls": "ls -lR --time-style=+ /usr/include/linux ccmalloc",
    "redis": REDIS,
    "lua": f"lua5.4 -e '{LUA}'",
    "tcl": f"echo '{TCL}' | tclsh",
    "jq": "seq 20000 | jq -s -c '[.[] | {k: (. % 97 | tostring), v: .}] | group_by(.k) | map(map(.v) | add)'",
    "xz": "seq 60000 | xz -2 -T2 | xz -d | cksum",
    "zstd": "seq 200000 | zstd -q -3 | zstd -q -d | cksum",
    "awk": "seq 20000 | awk '{a[$1 % 1000] = a[$1 % 1000] \",\" $1} END {for (i = 0; i < 1000; i++) print a[i]}'",
    "tar and gzip": "tar -c --sort=name --mtime=@0 ccmalloc/src | gzip -n -6 | gunzip | tar -t | sort",
    "bash": "bash -c 'declare -A a; for i in {1..4000}; do a[$((i % 91))]+=\"$i \"; done; echo ${a[@]} | cksum'",
    "openssl": "seq 5000 | openssl dgst -sha256; openssl list -cipher-algorithms | sort | head -n 50",
    "make": "printf 'all:%s\\n' \"$(seq -s ' ' 400)\" >$FOLDER/m; printf '%%:\\n\\t@echo $@\\n' >>$FOLDER/m; "
            "make -j1 -f $FOLDER/m | tail -n 3",
    "find": "find /usr/include -name 's*.h' | sort | xargs -n 50 cat | cksum",
    "diff": "diff ccmalloc/capi/src/entry.rs ccmalloc/capi/src/rules.rs | cksum",
    "bc": "echo '2^4000; scale=200; 4*a(1)' | bc -l",
    "vim": "seq 300 >$FOLDER/v; vim -es -u NONE -c 'g/7/m0' -c 'sort! n' -c 'w! /dev/stdout' -c q $FOLDER/v",
    "gdb": "gdb -nx -batch -ex 'info functions push' $FOLDER/rules | tail -n 20",
    "node": "node -e 'const m = new Map(); for (let i = 0; i < 2e4; i++) m.set(\"k\" + i % 997, i); console.log(m.size)'",
    **{f"rules {name}": f"$FOLDER/rules {name}" for name in
       ["threads", "small_threads", "coroutines", "contexts", "signals", "processes", "work", "backtraces"]},
    "module": "$FOLDER/rules module $FOLDER/module.so",
    "operator new": "$FOLDER/operators",
    "replaced operators": "$FOLDER/replaced",
    "with an allocator of its own": "$FOLDER/other",
    "address sanitizer": "$FOLDER/sanitized work && $FOLDER/sanitized threads",
    "address sanitizer, C++": "$FOLDER/sanitized_operators",
}


def sites_of(files):
    """The modules of what was learned, and the offsets and sizes of all call sites in each."""
    modules = {}
    for file in files:
        module = None
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith("module "):
                module = modules.setdefault(tuple(line.split()[1:4]), set())
            elif module is not None and (site := SITE.match(line)):
                module.add((int(site[1], 16), int(site[2])))
    return modules


def make_rules(modules, source):
    """A file of rules: mostly for real sites, so that they apply."""
    stack = lambda: f"{STACK}+{8 * source.randrange(0 if ARM else 1, 32 if ARM else 33)}"
    names = source.sample(sorted(modules), min(len(modules), 60))
    lines, lasts, rules = ["ccmalloc rules 1"], 0, 0
    sites = sum(map(len, modules.values()))
    lines += [f"module {' '.join(name)}" for name in names]
    for name in names:
        lines.append(f"module {' '.join(name)}")
        for offset, size in sorted(modules[name]) * (1 if sites > 50 else 3):
            if rules == 250:
                break
            rules += 1
            # Most are right, so that they apply.
            offset += source.choice([0] * 30 + [1, -1, 4096, 1 << 40, -offset, (1 << 64) - 1 - offset])
            size += source.choice([0] * 30 + [1, 8, 4096, 1 << 62, -size])
            rule = f"+{offset % (1 << 64):x} size {max(size, 0)}"
            if source.random() < 0.1:
                other = source.choice(names)
                caller = source.choice(sorted(modules[other]))[0] if modules[other] else 1
                rule += f" caller {other[0]}+{caller:x} at {stack()}"
            kind = source.random()
            if kind < 0.05 and lasts < 8:
                lasts += 1
                rule += " near last"
            elif kind < 0.15:
                rule += " open"
            elif kind < 0.2:
                rule += " huge"
            else:
                rule += f" near {source.choice(PLACES) if source.random() < 0.5 else stack()}"
            lines.append(rule + source.choice(["", "", " closest", " first-fit", " new-block"]))
    return "\n".join(lines) + "\n"


def run(command, folder, **environment):
    environment = {**os.environ, "FOLDER": str(folder), **environment}
    environment["ASAN_OPTIONS"] = "detect_leaks=0"
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    return done.returncode, done.stdout, done.stderr


def main():
    library, seeds, folder = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    chosen, wrong, runs = sys.argv[4:], [], 0
    for number, (name, command) in enumerate(SHELL.items()):
        if chosen and name not in chosen:
            continue
        first = command.split()[0].replace("$FOLDER", str(folder))
        if not shutil.which(first) and "=" not in first and name != "redis" or \
                name == "redis" and not shutil.which("redis-server"):
            print(f"{name}: not on this machine")
            continue
        plain = run(command, folder)
        if plain[0] or run(command, folder) != plain:
            print(f"{name}: without the library, status {plain[0]}, or not the same each time: left out")
            if name.startswith(("rules", "operator", "module", "replaced", "with", "address")):
                wrong.append(name)
            continue
        files = lambda kind: list(folder.glob(f"{kind}.*"))
        for old in files("learned") + files("report"):
            old.unlink()
        preload = {"LD_PRELOAD": str(library)}
        results = [("learning", run(command, folder, **preload, CCMALLOC_LEARN=str(folder / "learned")))]
        modules, rules = sites_of(files("learned")), folder / "random.ccrules"
        applied = 0
        for seed in range(seeds):
            rules.write_text(make_rules(modules, random.Random(f"{name} {seed}")))
            # `backtraces` and the like may differ by what a report costs: every other run has none.
            report = {"CCMALLOC_REPORT": str(folder / "report.all")} if seed % 2 == 0 else {}
            results.append((f"seed {seed}", run(command, folder, **preload, **report,
                                                CCMALLOC_RULES=str(rules))))
            if results[-1][1] != plain:
                shutil.copy(rules, folder / f"failed-{number}-{seed}.ccrules")
        for file in files("report"):
            applied += sum(int(count) for count in re.findall(r"applied (\d+)", file.read_text(errors="replace")))
        runs += len(results)
        for kind, result in results:
            if result != plain:
                wrong.append(f"{name}, {kind}: status {result[0]} for {plain[0]}, "
                             f"{len(result[1])} bytes for {len(plain[1])}, {result[2][-300:]!r}")
        sites = sum(map(len, modules.values()))
        print(f"{name}: {sites} sites in {len(modules)} modules, {applied} objects placed by rules", flush=True)
        if sites and not applied and not name.startswith(("with", "address", "vim")):
            wrong.append(f"{name}: no rule was ever applied")
    print(f"{runs} runs")
    sys.exit("\n".join(["wrong:", *wrong]) if wrong else 0)


main()
