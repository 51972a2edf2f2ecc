"""Checks that the modules of a crate use only those below them, and that no files use each other.

A crate's files are in `src` of the folder that is named, or in that folder itself. The order of
modules stands in `lib.rs`, or `main.rs`, in a comment that begins so, and has the names in
backquotes:

    // Modules, lowest first: `sys`, `geometry`, `machine`, `topology`, `layout`.

A file and the modules below it may use each other. Tests may use every module.
"""
import pathlib
import re
import sys

# Files that use each other and are still to be told apart; each goes once it is open.
KNOWN = """
ctree/src: mapped/map mapped/open
ctree/src: map/base map/entry map/into_iter
ctree/src: tree/arena tree/node tree/shape
"""
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


def leaves(tree):
    """The paths of a use tree: `a::{b, c::D as E}` gives a::b and a::c::D."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        return [tree.split(" as ")[0].strip()]
    prefix, depth, part, parts = tree[:brace], 0, "", []
    for char in tree[brace + 1 : tree.rfind("}")]:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    return [prefix + leaf for it in parts + [part] if it.strip() for leaf in leaves(it)]


def file_graph(source):
    """File -> files that it uses, by the paths of their modules, without those above and below."""
    texts = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if "tests" in parts or "bin" in parts:
            continue
        module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        texts[module] = without_tests(without_comments_and_strings(file.read_text()))

    def absolute(module, path):
        """The segments of a path from the crate's root; None if it begins with another crate."""
        words = [word.strip() for word in path.split("::")]
        at = module
        if words[0].lstrip("$") == "crate":
            at, words = (), words[1:]
        elif words[0] in ("self", "super"):
            while words and words[0] in ("self", "super"):
                at = at[:-1] if words[0] == "super" else at
                words = words[1:]
        elif at + (words[0],) not in texts:
            return None
        return at, words

    # Names that a module has from others.
    imported = {module: {} for module in texts}
    for module, text in texts.items():
        for tree in re.findall(r"\buse ([^;]+);", text):
            for leaf in leaves(tree):
                imported[module].setdefault(re.split(r"::|\s", leaf)[-1], leaf)

    def home(module, path, depth=0):
        """The module whose file a path leads to."""
        found = absolute(module, path)
        if found is None or depth > 8:
            return None
        at, words = found
        for place, word in enumerate(words):
            if at + (word,) in texts:
                at += (word,)
            elif word in imported.get(at, {}) and at != module:
                rest = [imported[at][word]] + list(words[place + 1 :])
                return home(at, "::".join(rest), depth + 1) or at
            else:
                break
        return at if at in texts else None

    uses = {module: set() for module in texts}
    for module, text in texts.items():
        paths = [leaf for tree in re.findall(r"\buse ([^;]+);", text) for leaf in leaves(tree)]
        paths += re.findall(rf"(?<![\w:])(?:\$?crate|super|self)(?:::{WORD})+", text)
        for path in paths:
            used = home(module, path)
            if used is None or used[: len(module)] == module or module[: len(used)] == used:
                continue
            uses[module].add(used)
    return uses


def name_of(module):
    return "/".join(module) or "lib"


def check(crate):
    source = crate / "src" if (crate / "src").is_dir() else crate
    uses = graph(source)
    found = {
        f"{source}: {' '.join(sorted(map(name_of, circle)))}"
        for circle in circles(file_graph(source))
    }
    known = {line for line in KNOWN.splitlines() if line.startswith(f"{source}: ")}
    files = [f"{line} use each other" for line in found - known]
    files += [f"{line} use each other no more: take them out of KNOWN" for line in known - found]
    text = re.search(r"^// Modules, lowest first(?:.*\n//)*.*", root_of(source).read_text(), re.M)
    if not text:
        found = [" ".join(sorted(circle)) for circle in circles(uses)]
        return [f"{source}: gives no order of modules; circles: {found or 'none'}"] + files
    rank = {name: place for place, name in enumerate(re.findall(f"`({WORD})`", text[0]))}
    bad = [f"{source}: {module} is not in the order" for module in uses.keys() - rank.keys()]
    bad += [f"{source}: there is no module {module}" for module in rank.keys() - uses.keys()]
    for module, used in uses.items():
        bad += [
            f"{file}: {module} uses {other}, which stands above it"
            for other, file in used.items()
            if rank.get(other, 0) > rank.get(module, 0)
        ]
    return bad + files


bad = [line for crate in sys.argv[1:] for line in check(pathlib.Path(crate))]
sys.exit("\n".join(bad) if bad else 0)
