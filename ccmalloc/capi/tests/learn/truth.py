"""Compares what libccmalloc.so learns with what is known of the programs beside this file.

    truth.py LIBRARY [all | STRUCTURE...]

Compiles each at several levels of optimization, learns rules from a run, and applies them to another.
For each structure a row of CASES says which objects have a parent that a register or the stack holds,
and in how many of the samples. `all`: every combination of options for every structure.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
COMPILERS = {
    "c": (["gcc", "-std=gnu11"], ["-O0", "-O1", "-O2", "-O3"],
          {"fp": "-fno-omit-frame-pointer", "nofp": "-fomit-frame-pointer"},
          {"pie": ["-fPIE", "-pie"], "fixed": ["-fno-PIE", "-no-pie"]}),
    "cpp": (["g++", "-std=c++17"], ["-O0", "-O1", "-O2", "-O3"],
            {"fp": "-fno-omit-frame-pointer", "nofp": "-fomit-frame-pointer"},
            {"pie": ["-fPIE", "-pie"], "fixed": ["-fno-PIE", "-no-pie"]}),
    "rs": (["rustc", "--edition=2024", "-Clink-arg=-Wl,--build-id"],
           [f"-Copt-level={level}" for level in range(4)],
           {"fp": "-Cforce-frame-pointers=yes", "nofp": "-Cforce-frame-pointers=no"},
           {"pie": ["-Crelocation-model=pie"], "fixed": ["-Crelocation-model=static"]}),
}
# Other combinations are for `all`, and for the structures of EVERY.
FEW = [(0, "nofp", "pie"), (1, "fp", "fixed"), (2, "nofp", "pie"), (3, "nofp", "fixed")]
EVERY = {("c", "loop"), ("c", "recursion"), ("c", "bucket")}
ALL = [(level, frame, kind) for level in range(4) for frame in ("fp", "nofp")
       for kind in ("pie", "fixed")]


class Case:
    """What is known of a structure: the size of the objects, in how many hundredths of the samples
    a place leads to the parent, which function allocates them (None: it is the library's), and at
    which levels it is only by chance at a place that can be named. `near`: the part of the objects
    that come to lie in the block of their hint, where rules apply. `wide`: it is found, but no rule
    is proposed, since two do not fit a block."""

    def __init__(self, size=None, share=None, function=None, chance=(), near=0.3, wide=False):
        self.size, self.share, self.function, self.chance = size, share, function, chance
        self.near, self.wide = near, wide


NOTHING = Case()
ANY = range(4)
CASES = {
    "c": {
        "loop": Case(24, 95, "insert_by_loop"),
        "recursion": Case(24, 95, "insert_by_recursion"),
        "front": Case(32, 95, "push_front"),
        "back": Case(32, 95, "push_back"),
        # The first of each chain has none, and samples are denser at the start.
        "bucket": Case(32, 75, "append_to_bucket"),
        # A vertex leaves room for one edge.
        "adjacency": Case(32, 90, "add_edge", near=0.05),
        "tsearch": Case(24, 95),
        "trie": Case(24, 95, "insert_word"),
        "string": Case(32, 95, "fill_entry"),
        "wide": Case(48, 95, wide=True),
        "short": NOTHING, "in_cache": NOTHING, "strings": NOTHING, "pool": NOTHING,
    },
    "cpp": {
        "list": Case(32, 80),
        # The library holds the successor of the new key, which is the parent of most.
        "map": Case(48, 50, wide=True),
        "map_of_strings": Case(96, 70, wide=True),
        # The library looks for the neighbour after the call. What an earlier search has left on the
        # stack leads to one in some builds.
        "unordered": Case(24, 50, chance=ANY, near=0),
        "tree": Case(32, 95, "insert"),
        "strings": NOTHING, "temporaries": NOTHING, "arena": NOTHING,
    },
    "rs": {
        "loop": Case(24, 95),
        # Without optimization, boxes are made some calls of the library further in, at one site for
        # all of a size: parents lie far up the stack, and sites share it.
        "recursion": Case(24, 95, chance=(0,)),
        "linked_list": Case(32, 80, chance=(0,)),
        "graph": Case(32, 90, chance=(0,), near=0.05),
        "trie": Case(24, 90),
        "strings": NOTHING, "btree_map": NOTHING, "arena": NOTHING, "temporaries": NOTHING,
    },
}
RULE = re.compile(r"\+([0-9a-f]+) size (\d+)( caller \S+ at \S+)? near (\S+)  "
                  r"# .*linked (\d+) %, (.*), alive (\d+) bytes.*$")
ROW = re.compile(r"rule .*\+([0-9a-f]+) size (\d+) .*: applied (\d+), usable (\d+), "
                 r"same block (\d+), same page (\d+)$")


def compile_program(language, folder, level, frame, kind):
    compiler, levels, frames, kinds = COMPILERS[language]
    program = folder / f"{language}{level}{frame}{kind}"
    if not program.exists():
        command = [*compiler, levels[level], frames[frame], *kinds[kind],
                   HERE / f"truth.{language}", "-o", program]
        subprocess.run(command, check=True)
    return program


def run(program, mode, library, **environment):
    done = subprocess.run([program, mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "LD_PRELOAD": str(library), **environment}, timeout=60)
    assert done.returncode == 0 and not done.stderr, f"status {done.returncode}, {done.stderr}"
    return done.stdout


def function_of(program, offset):
    """The function's name, by the symbols of the program itself."""
    symbols = subprocess.check_output(["nm", "-C", "--defined-only", program], text=True)
    known = [(int(at, 16), name) for at, kind, name in
             (line.split(" ", 2) for line in symbols.splitlines()) if kind in "tTwW"]
    known = [(at, name) for at, name in known if at <= offset]
    return max(known)[1] if known else ""


def check(program, mode, case, level, library, folder):
    """Learns and applies; returns what was found. Fails if that is not what is known."""
    plain = run(program, mode, library)
    for old in folder.glob("learned*"):
        old.unlink()
    learned = run(program, mode, library, CCMALLOC_LEARN=str(folder / "learned"))
    files = list(folder.glob("learned.*"))
    assert learned == plain, "the output differs while it is learned from"
    assert len(files) == 1, f"{len(files)} files were written"
    text = files[0].read_text()
    rules = [match for line in text.splitlines() if (match := RULE.match(line))]
    if case.share is None:
        assert not rules, f"proposed:\n{text}"
        return "nothing"
    if case.wide:
        found = re.findall(rf"size {case.size}: .*linked (\d+) % by (\S+): two do not fit", text)
        assert not rules and found and int(found[0][0]) >= case.share, f"not found, or proposed:\n{text}"
        return f"{found[0][1]:8} linked {found[0][0]:>3} %, but two do not fit a block"
    mine = [rule for rule in rules if int(rule[2]) == case.size]
    if not mine and level in case.chance:
        return "not found"
    assert mine, f"no rule of size {case.size}:\n{text}"
    best = max(mine, key=lambda rule: int(rule[7]))
    assert int(best[5]) >= case.share or level in case.chance, f"linked {best[5]} %, less than {case.share}:\n{text}"
    if case.function:
        # A program that is not moved has its addresses in the file as they are.
        name = function_of(program, int(best[1], 16))
        assert case.function in name, f"the site is in {name}, not in {case.function}:\n{text}"
    report = folder / "learned.report"
    # A word of the stack is not read in another page than the stack pointer's. Each run has another
    # stack.
    for _ in range(4):
        report.unlink(missing_ok=True)
        ruled = run(program, mode, library, CCMALLOC_RULES=str(files[0]), CCMALLOC_REPORT=str(report))
        assert ruled == plain, "the output differs with rules"
        rows = [match for line in report.read_text().splitlines() if (match := ROW.match(line))]
        rows = [[int(number) for number in row.groups()[2:]] for row in rows if row[1] == best[1]
                and int(row[2]) == case.size]
        if any(row[0] for row in rows):
            break
    applied, usable, block, page = (sum(row[i] for row in rows) for i in range(4))
    if level in case.chance:
        return f"{best[4]:8} linked {best[5]:>3} %, by chance"
    assert applied and usable >= applied / 2, f"usable {usable} of {applied}:\n{report.read_text()}"
    assert block >= case.near * applied, f"in the hint's block {block} of {applied}"
    return (f"{best[4]:8} linked {best[5]:>3} %, usable {100 * usable // applied:3} %, same block "
            f"{100 * block // applied:2} %, same page {100 * page // applied:3} %, {best[6]}")


def main():
    library, chosen = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    folder = pathlib.Path(tempfile.mkdtemp())
    failures = []
    try:
        for language, cases in CASES.items():
            for mode, case in cases.items():
                is_every = "all" in chosen or (language, mode) in EVERY
                if set(chosen) - {"all"} and mode not in chosen:
                    continue
                for options in ALL if is_every else FEW:
                    program = compile_program(language, folder, *options)
                    name = f"{language:3} {mode:14} {COMPILERS[language][1][options[0]]:12} " \
                           f"{options[1]:4} {options[2]:5}"
                    try:
                        print(name, check(program, mode, case, options[0], library, folder), flush=True)
                    except AssertionError as error:
                        print(name, "WRONG:", error, flush=True)
                        failures.append(name)
    finally:
        shutil.rmtree(folder)
    sys.exit("\n".join(["wrong:", *failures]) if failures else 0)


main()
