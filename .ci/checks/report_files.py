"""Checks the drawing and the record of a report."""
import json, pathlib, sys
import xml.etree.ElementTree as xml

out = pathlib.Path(sys.argv[1])
drawing = xml.parse(out / "ctree.svg").getroot()
run = json.loads((out / "report.jsonl").open().readline())["report"]
assert run["finished"] == run["workloads"] == 1 and not run["failures"], run
rows = sum(1 for _ in (out / "report.jsonl").open()) - 1
bars = sum(element.get("class") in ("better", "worse", "even") for element in drawing.iter())
assert 0 < bars <= rows, (bars, rows)
print(f"{rows} rows, {bars} bars")
