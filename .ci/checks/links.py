"""Checks that links of the committed documents lead to files and headings that exist.

READMEs that are published alone may link to the web only.
"""
import pathlib, re, subprocess, sys

def headings(path):
    """The anchors that GitHub makes of a document's headings."""
    found, fenced = set(), False
    for line in path.read_text().splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := re.match(r"#+ (.*)", line)):
            text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading[1]).strip().lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            repeats = 0
            while slug + (f"-{repeats}" if repeats else "") in found:
                repeats += 1
            found.add(slug + (f"-{repeats}" if repeats else ""))
    return found

files = set(subprocess.check_output(["git", "ls-files"], text=True).split("\n")) - {""}
root = pathlib.Path.cwd()
crates = ("ccmalloc", "ccmorph", "ccmorph/derive", "ctree", "model", "scope", "trace", "inside")
alone = {pathlib.Path(crate) / "README.md" for crate in crates}
bad, links = [], 0
for name in sorted(file for file in files if file.endswith(".md")):
    path = pathlib.Path(name)
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        links += 1
        if re.match(r"https?://|mailto:", target):
            continue
        if path in alone:
            bad.append(f"{name}: {target} leads out of what is published")
            continue
        to, _, anchor = target.partition("#")
        goal = (path.parent / to).resolve() if to else path.resolve()
        relative = goal.relative_to(root).as_posix() if goal.is_relative_to(root) else None
        inside = relative is not None and (
            relative in files or any(file.startswith(f"{relative}/") for file in files)
        )
        if not inside:
            bad.append(f"{name}: there is no {target}")
        elif anchor and goal.suffix == ".md" and anchor not in headings(goal):
            bad.append(f"{name}: there is no heading {target}")
print(f"{links} links in documents")
sys.exit("\n".join(bad) if bad else 0)
