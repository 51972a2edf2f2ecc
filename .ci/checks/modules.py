"""Checks that the modules of a crate use only those below them.

The order stands in `src/lib.rs`, or `src/main.rs`, in a comment that begins so, and has the names
in backquotes:

    // Modules, lowest first: `sys`, `geometry`, `machine`, `topology`, `layout`.

Tests may use every module.
"""
import pathlib
import re
import sys

WORD = r"[A-Za-z_][A-Za-z0-9_]*"


def without_comments_and_strings(text):
    text = re.sub(r'r#"(?:.|\n)*?"#|"(?:\\.|[^"\\])*"', '""', text)
    return re.sub(r"//[^\n]*", "", text)


def without_tests(text):
    """Cuts inline modules and items behind `#[cfg(test)]`."""
    while (start := text.find("#[cfg(test)]")) >= 0:
        brace, semicolon = text.find("{", start), text.find(";", start)
        if brace < 0 or 0 <= semicolon < brace:
            text = text[:start] + text[semicolon + 1 :]
            continue
        depth, end = 1, brace + 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[:start] + text[end:]
    return text


def heads(tree):
    """The first names of a use tree: `{a::{b, c}, d}` gives a and d."""
    depth, names, word = 0, [], ""
    for char in tree:
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        if char == "," and depth == 0:
            names.append(word)
            word = ""
        else:
            word += char
    return [match[0] for name in names + [word] if (match := re.match(WORD, name.strip()))]


def first_names(text, prefix):
    """Names that follow `prefix::` in paths and in `use` declarations."""
    for match in re.finditer(rf"(?<![\w:]){prefix}::(\{{|{WORD})", text):
        if match[1] != "{":
            yield match[1]
            continue
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield from heads(text[match.end() : end - 1])


def root_of(source):
    library = source / "lib.rs"
    return library if library.exists() else source / "main.rs"


def graph(source):
    """Module -> {module that it uses: a file that does}."""
    root = without_tests(without_comments_and_strings(root_of(source).read_text()))
    modules = set(re.findall(rf"\bmod ({WORD})\s*[;{{]", root))
    home = {}
    for path, tree in re.findall(rf"\buse (?:crate::|self::)?({WORD})((?:::[^;]*)?);", root):
        if path in modules:
            for name in re.findall(WORD, tree):
                home.setdefault(name, path)
    uses = {module: {} for module in modules}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts in (("lib",), ("main",)) or parts[0] == "bin" or "tests" in parts:
            continue
        module = parts[0]
        if module not in modules:
            continue
        depth = len(parts) - (parts[-1] == "mod")
        text = without_tests(without_comments_and_strings(file.read_text()))
        names = set(first_names(text, r"\$?crate"))
        # `super` in a module inside this file leads to the file's own modules.
        own = set(re.findall(rf"\bmod ({WORD})\s*[;{{]", text))
        names |= set(first_names(text, "::".join(["super"] * depth))) - own
        for name in names:
            used = name if name in modules else home.get(name)
            if used and used != module:
                uses[module].setdefault(used, file.as_posix())
    return uses


def circles(uses):
    """Sets of modules that reach each other."""
    reach = {}
    for module in uses:
        seen, todo = set(), [module]
        while todo:
            for used in uses[todo.pop()]:
                if used not in seen:
                    seen.add(used)
                    todo.append(used)
        reach[module] = seen
    return {frozenset(b for b in reach[a] if a in reach[b]) for a in uses if a in reach[a]}


def check(source):
    uses = graph(source)
    text = re.search(r"^// Modules, lowest first(?:.*\n//)*.*", root_of(source).read_text(), re.M)
    if not text:
        found = [" ".join(sorted(circle)) for circle in circles(uses)]
        return [f"{source}: gives no order of modules; circles: {found or 'none'}"]
    rank = {name: place for place, name in enumerate(re.findall(f"`({WORD})`", text[0]))}
    bad = [f"{source}: {module} is not in the order" for module in uses.keys() - rank.keys()]
    bad += [f"{source}: there is no module {module}" for module in rank.keys() - uses.keys()]
    for module, used in uses.items():
        bad += [
            f"{file}: {module} uses {other}, which stands above it"
            for other, file in used.items()
            if rank.get(other, 0) > rank.get(module, 0)
        ]
    return bad


bad = [line for crate in sys.argv[1:] for line in check(pathlib.Path(crate) / "src")]
sys.exit("\n".join(bad) if bad else 0)
