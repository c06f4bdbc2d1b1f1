"""Checks of the tree that need no compiler: layers, links, file names in documents, length of files.

`./lattice lint` runs it, and so does tests/test_tree.py. Each check is a generator of findings, `file:line: what`.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 400
CODE = {".cc", ".h", ".py", ".sh", ".js", ".c"}
# Top-level folders of the tree: a word that begins with one of them is meant as a path.
FOLDERS = ("src", "tests", "tools", "docs", "bench", "examples", "fuzz", "cmake", "configs", "python", "results")


@cache
def tracked():
    """Files of the tree: those git knows and those it would take up, but for what was deleted."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    skipped = {"build", ".venv", "runs"}
    return [p for p in ROOT.rglob("*") if p.is_file() and p.relative_to(ROOT).parts[0] not in skipped]


def lines_of(path):
    return enumerate(path.read_text(errors="replace").splitlines(), 1)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def layer_order():
    """The folders of src/ from top to bottom, as docs/architecture.md lists them."""
    table = (ROOT / "docs/architecture.md").read_text()
    return re.findall(r"^\| `src/(\w+)` \|", table, re.M)


def check_layers(order=None, files=None):
    """A folder of src/ includes only folders above it."""
    order = order or layer_order()
    files = files or [p for p in tracked() if p.suffix in {".cc", ".h"} and name_of(p).startswith("src/")]
    for path in files:
        folder = path.relative_to(ROOT).parts[1]
        if folder not in order:
            yield f"{name_of(path)}:1: src/{folder} is not in the table of docs/architecture.md"
            continue
        for number, line in lines_of(path):
            included = re.match(r'#include "(\w+)/', line)
            if included and included[1] in order and order.index(included[1]) > order.index(folder):
                yield f"{name_of(path)}:{number}: src/{folder} includes src/{included[1]}, which stands below it"


def anchors_of(path):
    """The anchors of a Markdown file's headings, made the way code hosts do it."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links():
    """Links of documents lead to files, and to headings, that exist."""
    for path in tracked():
        if path.suffix != ".md":
            continue
        for number, line in lines_of(path):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if "://" in target or target.startswith("mailto:"):
                    continue
                file, _, anchor = target.partition("#")
                found = (path.parent / file).resolve() if file else path
                if not found.exists():
                    yield f"{name_of(path)}:{number}: link to {target}, which does not exist"
                elif anchor and found.suffix == ".md" and anchor not in anchors_of(found):
                    yield f"{name_of(path)}:{number}: link to {target}, but there is no such heading"


def is_there(name):
    """Whether a path in a document names something: `src/a.*`, `tests/test_<x>.py` and `a/{b,c}.cc` are patterns."""
    name = name.split("::")[0].rstrip("/")
    name = re.sub(r":\d.*$", "", name)
    pattern = re.sub(r"<[^>]*>", "*", name)
    choices = re.search(r"\{([^}]*)\}", pattern)
    if choices:
        return all(is_there(pattern.replace(choices[0], one)) for one in choices[1].split(","))
    return any(ROOT.glob(pattern)) or any(ROOT.glob(pattern + ".*"))


def check_names():
    """Files that documents name, in backticks or in a command to type, exist."""
    pattern = re.compile(r"(?:^|[\s`(])((?:" + "|".join(FOLDERS) + r")/[\w./*<>{},:-]*[\w>}*])")
    for path in tracked():
        if path.suffix != ".md" or path.name == "CHANGELOG.md":  # which also tells of what is gone
            continue
        for number, line in lines_of(path):
            for name in pattern.findall(line):
                if not is_there(name):
                    yield f"{name_of(path)}:{number}: names {name}, which does not exist"


def check_lengths():
    """No file of code is longer than a reader's patience."""
    for path in tracked():
        if path.suffix not in CODE:
            continue
        count = sum(1 for _ in lines_of(path))
        if count > MOST_LINES:
            yield f"{name_of(path)}:{count}: {count} lines; split it (at most {MOST_LINES})"


CHECKS = (check_layers, check_links, check_names, check_lengths)


def main():
    findings = [finding for check in CHECKS for finding in check()]
    print("\n".join(findings) or f"tree: {len(CHECKS)} checks of {len(tracked())} files passed")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
