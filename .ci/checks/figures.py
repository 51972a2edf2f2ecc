"""Checks the rows and drawings of the figures of the thesis."""
import json, math, pathlib, sys
import xml.etree.ElementTree as xml

out = pathlib.Path(sys.argv[1])
TREES = {"random binary tree", "depth-first binary tree", "C-tree", "C-tree without colours"}
structures = {
    "2-6": {"measured": {"B-tree"}, "simulated": {"B-tree"}},
    "2-7": {
        "measured": TREES | {
            "coloured B-tree",
            "coloured B-tree, 512 B nodes",
            "binary tree as the model lays it out",
        },
        "simulated": TREES | {"coloured B-tree"},
    },
}
for figure, kinds in structures.items():
    rows = [json.loads(line) for line in open(out / f"figure-{figure}.jsonl")]
    assert all(row["figure"] == figure for row in rows)
    for kind, names in kinds.items():
        own = [row for row in rows if row["kind"] == kind]
        assert {row["structure"] for row in own} == names, (figure, kind)
        for row in own:
            height = row["ns" if kind == "measured" else "cycles"]
            assert math.isfinite(height) and height > 0 and row["runs"] >= 1, row
    assert {row["kind"] for row in rows} == set(kinds), figure
    if figure == "2-6":
        assert {row["node_bytes"] for row in rows} >= {32, 64, 96, 128, 256, 512, 1024, 2048, 4096}
    else:
        assert {row["searches"] for row in rows} == {10, 100, 1000, 10000}
    drawing = xml.parse(out / f"figure-{figure}.svg").getroot()
    dots = sum(element.tag.endswith("circle") for element in drawing.iter())
    assert dots == len(rows), (figure, dots)
    print(f"figure {figure}: {len(rows)} rows, {dots} dots")
