"""Prints the option with which docs.rs chooses a package's features. In: cargo metadata."""
import json
import sys

packages = json.load(sys.stdin)["packages"]
package = next(package for package in packages if package["name"] == sys.argv[1])
wanted = package["metadata"]["docs"]["rs"]
if wanted.get("all-features"):
    print("--all-features")
else:
    print("--features=" + ",".join(wanted.get("features", [])))
