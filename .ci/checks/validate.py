"""Checks the one row of `ccmodel-lab validate` that CI runs, and the command's exit code."""
import json, sys

rows = [json.loads(line) for line in open(sys.argv[1])]
assert [row["name"] for row in rows] == ["sim_vs_cachegrind"], rows
for row in rows:
    print(row["name"], row["value"], "of", row["allowed"])
    assert row["ok"] is True, row
assert sys.argv[2] == "0", "validate: exit code " + sys.argv[2]
