"""Prints a line of arguments of `cargo check` for each package of the workspace with none of its
features, each alone, and all; of the package that is named, every set of them."""
import itertools
import json
import sys

# The rivals behind features of `measure` take minutes to build, and clippy has checked its default.
# Those of `benches` are names.
LEFT_OUT = ["measure", "benches"]
every_set_of, nightly = sys.argv[1:3]
for package in json.load(sys.stdin)["packages"]:
    name = package["name"]
    if name in LEFT_OUT:
        continue
    # The feature that needs a nightly compiler is checked where there is one.
    features = sorted(set(package["features"]) - {"default", nightly})
    sizes = range(len(features) + 1) if name == every_set_of else {0, 1, len(features)}
    for size in sizes:
        for chosen in itertools.combinations(features, size):
            print("-p", name, "--no-default-features", "--features=" + ",".join(chosen))
