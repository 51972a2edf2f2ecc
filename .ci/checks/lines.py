"""Prints the number of lines of Rust by folder. Fails where a folder has more than its ceiling, or a
line more than 100 columns."""
import collections
import subprocess
import sys

COLUMNS = 100
# `model/src` is what the package publishes. `ccmalloc` has rules and their learner, `scope` `improve`,
# which learns, tries and keeps them, edits of source that it tries (allocators, maps, room of
# collections, hints, morphs, orders of fields), and advice on structures of several types beside
# `CcMalloc`, on containers of one's own and on orders of use; programs that run (attach, snapshots, a
# live view, sampling, scrapers, growth), budgets of tests, a scan for leaks, retained bytes. `tests`
# has the programs of `tests/advice`, with several changes each; the adviser is fitted to most, and 25
# that it has not seen judge it. `benches` measures these, and packages.
CEILINGS = {"model": 27000, "model/src": 22000, "ctree": 27700, "scope": 74950, "trace": 14800,
            "inside": 3900, "ccmalloc": 21050, "benches": 17250, "ccmorph": 12400,
            "examples": 2400, "tests": 11900}

files = subprocess.check_output(["git", "ls-files", "*.rs"], text=True).split()
lines_of = collections.Counter()
wrong = []
for file in files:
    with open(file) as text:
        for number, line in enumerate(text, 1):
            lines_of[file.split("/")[0]] += 1
            lines_of["model/src"] += file.startswith("model/src/")
            if len(line.rstrip("\n")) > COLUMNS:
                wrong.append(f"{file}:{number} has more than {COLUMNS} columns")
for folder, lines in lines_of.most_common():
    ceiling = CEILINGS.get(folder, "")
    print(f"{folder:10} {lines:7} {ceiling:7}")
    if ceiling and lines > ceiling:
        wrong.append(f"{folder} has {lines} lines, more than {ceiling}")
print(f"{'all':10} {sum(lines_of.values()) - lines_of['model/src']:7}")
sys.exit("\n".join(wrong[:20]) or 0)
