"""Prints the executables with tests that cargo has built of the packages that are named, but for
those of its binaries and examples. In: cargo's messages in JSON."""
import json
import re
import sys

found = set()
for line in sys.stdin:
    message = json.loads(line)
    if not message.get("executable") or not {"lib", "test"} & set(message["target"]["kind"]):
        continue
    # `path+file:///folder#name@version`; without the name if the folder has it.
    package = re.search(r"([^/#@]+)(@|#)[^#@]*$", message["package_id"])
    if package and package[1] in sys.argv[1:]:
        found.add(package[1])
        print(message["executable"])
missing = set(sys.argv[1:]) - found
if missing:
    sys.exit(f"no tests were built of {', '.join(sorted(missing))}")
