"""Holds a profile, as `ccscope show --json` on standard input, against the judged findings of its
program, and prints its loads.

    findings.py PACKAGE WORDS    the lines of findings.tsv with this package and these words

Right findings must still be said, and wrong ones no longer.
"""
import json
import pathlib
import sys

# Bytes beyond those in use, by what is known of the chunk.
UNUSED = ("partly-used", "capacity", "reserved")


# Of chunks that come and go, those that nobody reads are copies.
GOING = ("temporary", "never-read")


def kind_of(kind):
    return "unused" if kind in UNUSED else "going" if kind in GOING else kind


package, words = sys.argv[1:]
profile = json.load(sys.stdin)
sites = {site["id"]: site for site in profile["sites"]}
said = set()
for finding in profile["findings"]:
    site = sites.get(finding["site"], {})
    # The program's line and that of the package which allocates for it.
    for place in (site, site.get("library") or {}):
        said.add((kind_of(finding["kind"]), f"{place.get('file')}:{place.get('line')}"))
rows = (pathlib.Path(__file__).parent / "findings.tsv").read_text().splitlines()
for row in rows:
    if row.startswith("#"):
        continue
    name, of, kind, place, _, _, verdict, _ = row.split("\t")
    if (name, of) != (package, words):
        continue
    is_said = any(kind_of(kind) == it and where.endswith("/" + place) for it, where in said)
    if is_said != (verdict == "right"):
        sys.exit(f"{kind} at {place} is {verdict}, and {'said' if is_said else 'not said'}")
print(profile["total"]["heap_reads"])
