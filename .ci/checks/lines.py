"""Prints the number of lines of Rust by folder. Fails where a line has more than 100 columns."""
import collections
import subprocess
import sys

COLUMNS = 100

files = subprocess.check_output(["git", "ls-files", "*.rs"], text=True).split()
lines_of = collections.Counter()
long = []
for file in files:
    with open(file) as text:
        for number, line in enumerate(text, 1):
            lines_of[file.split("/")[0]] += 1
            if len(line.rstrip("\n")) > COLUMNS:
                long.append(f"{file}:{number}")
for folder, lines in lines_of.most_common():
    print(f"{folder:10} {lines:7}")
print(f"{'all':10} {sum(lines_of.values()):7}")
sys.exit(f"{len(long)} lines above {COLUMNS} columns: {' '.join(long[:20])}" if long else 0)
