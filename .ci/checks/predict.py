"""Checks what `model predict --json` prints."""
import json, sys

text = open(sys.argv[1]).read()
json.loads(text)
for layout in ("random", "dfs", "cluster", "veb"):
    assert layout in text, f"no prediction for {layout}"
assert '"ns"' in text and "misses" in text, "no times or misses"
