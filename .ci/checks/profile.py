"""Checks a profile: its status, whether it has accesses, and a site in a file. In: its JSON."""
import json
import sys

status, has_accesses, file = int(sys.argv[1]), sys.argv[2] == "accesses", sys.argv[3]
profile = json.load(sys.stdin)
run, total = profile["run"], profile["total"]
assert run["exit"] == {"Code": status}, run["exit"]
assert total["allocations"] > 1000 and total["peak_usable"] > 10000, total
assert run["accesses"] == has_accesses == (total["heap_reads"] > 10000), total
places = [frame["file"] for site in profile["sites"] for frame in site["stack"]]
assert any(place.endswith(file) for place in places), f"no site in {file}: {set(places)}"
print(f"{run['command'][0].rsplit('/', 1)[-1]}: {total['allocations']} chunks, "
      f"{total['heap_reads']} reads, {len(profile['sites'])} sites")
