"""Prints the executables that cargo has built. In: cargo's messages in JSON."""
import json
import sys

for line in sys.stdin:
    executable = json.loads(line).get("executable")
    if executable:
        print(executable)
