"""Checks the rows that a report prints."""
import json, math, sys

rows = [json.loads(line) for line in open(sys.argv[1])]
names = {row["name"] for row in rows}
for name in (
    "unhinted_string_building_vs_glibc",
    "unhinted_string_building_vs_mimalloc",
    "hinted_alloc_cost",
    "small_map_16_vs_btreemap",
    "get_many_2m_vs_btreemap",
    "get_many_2m_vs_bbtree",
    "get_many_2m_vs_brie",
):
    assert name in names, name
for row in rows:
    assert row["suite"] in ("ccmalloc", "ctree"), row
    assert row["unit"] and row["rival"] and row["runs"] >= 1, row
    for figure in ("ours", "theirs", "ratio"):
        assert math.isfinite(row[figure]) and row[figure] > 0, row
