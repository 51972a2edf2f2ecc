"""Checks the drawing and the record of a report."""
import json, pathlib, sys
import xml.etree.ElementTree as xml

out = pathlib.Path(sys.argv[1])
drawing = xml.parse(out / "ctree.svg").getroot()
run = json.loads((out / "report.jsonl").open().readline())["report"]
assert run["finished"] == run["workloads"] == 1 and not run["failures"], run
rows = sum(1 for _ in (out / "report.jsonl").open()) - 1
# The colours of better, worse and undecided.
colours = ("#3D8F66", "#C06A4E", "#A9B1BA")
bars = sum(element.get("fill") in colours for element in drawing.iter())
assert 0 < bars <= rows, (bars, rows)
print(f"{rows} rows, {bars} bars")
