"""Checks and prints what the quickstart prints as JSON."""
import json, math, sys

rows = json.load(open(sys.argv[1]))["rows"]
names = [row["layout"] for row in rows]
assert names == ["malloc", "hinted", "morphed", "ctree", "btreemap"], names
for row in rows:
    assert row["nodes"] >= 1_500_000, row
    for figure in ("ns_measured", "ns_predicted", "speedup", "bytes_per_node"):
        assert math.isfinite(row[figure]) and row[figure] > 0, (figure, row)
    assert row["misses_predicted"], row
    assert all(misses >= 0 for misses in row["misses_predicted"].values()), row
    figures = ("layout", "ns_measured", "ns_predicted", "speedup", "bytes_per_node")
    print("  ".join(f"{figure} {row[figure]:.2f}" if figure != "layout" else f"{row[figure]:9}"
                    for figure in figures))
