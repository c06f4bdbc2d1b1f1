"""Writes requirements*.lock: every Python package that the launcher installs, with those that they need, each with its version
and the SHA-256 of all files that the index has of it. pip takes nothing else (--require-hashes).

    .venv/bin/python tools/lock/lock.py            after a change of requirements*.txt; needs the package index
    .venv/bin/python tools/lock/lock.py --check    fails when a lock does not fit its requirements; needs no network

Versions are those of the running environment where they suit a Python version, else the newest that do. torch is left out:
the same version comes as several builds (for CPU, for CUDA) from several indexes, so its files are not the same everywhere.
"""

import argparse
import io
import re
import sys
import urllib.parse
import urllib.request
import zipfile
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKED = ("requirements.txt", "requirements-hf.txt", "requirements-gpu.txt", "requirements-lint.txt", "requirements-bench.txt")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LEFT_OUT = {"torch"}
WITHOUT = "# Not for Python "  # and why
# What torch itself needs, beside the libraries of its CUDA build.
WITH_TORCH = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools")


class Page(HTMLParser):
    """The files of a project on a simple index."""

    def __init__(self):
        super().__init__()
        self.files = []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag != "a" or "href" not in values or "data-yanked" in values:
            return
        url, _, fragment = values["href"].partition("#")
        name = urllib.parse.unquote(url.rpartition("/")[2])
        digest = re.match(r"sha256=([0-9a-f]{64})", fragment)
        try:
            version = parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1]
        except (InvalidWheelFilename, InvalidSdistFilename):
            return
        if digest:
            self.files.append((version, url, digest[1], values.get("data-requires-python") or ""))


class Index:
    def __init__(self):
        from pip._internal.models.index import PyPI  # the default of pip, which knows where packages are
        self.url, self.pages, self.needed = PyPI.simple_url, {}, {}

    def files(self, name):
        if name not in self.pages:
            page = Page()
            with urllib.request.urlopen(f"{self.url}/{name}/", timeout=60) as answer:
                page.feed(answer.read().decode())
            self.pages[name] = page.files
        return self.pages[name]

    def suits(self, name, version, python):
        found = [file for file in self.files(name) if file[0] == version]
        return bool(found) and all(Version(f"{python}.9") in SpecifierSet(file[3]) for file in found)

    def newest(self, name, specifier, python):
        suiting = [file[0] for file in self.files(name) if file[0] in specifier and not file[0].is_prerelease
                   and self.suits(name, file[0], python)]
        if not suiting:
            raise LookupError(f"no version of {name}{specifier} for Python {python}")
        return max(suiting)

    def needs(self, name, version):
        """Requires-Dist of a version: of the environment, or from the index."""
        try:
            if Version(metadata.version(name)) == version:
                return metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            pass
        wheel = next((file for file in self.files(name) if file[0] == version and file[1].endswith(".whl")), None)
        if wheel is None:
            sys.exit(f"{name} {version} is not installed here and has no wheel on the index")
        if wheel[1] not in self.needed:
            with urllib.request.urlopen(wheel[1], timeout=600) as answer, zipfile.ZipFile(io.BytesIO(answer.read())) as archive:
                path = next(path for path in archive.namelist() if path.endswith(".dist-info/METADATA"))
                self.needed[wheel[1]] = re.findall(r"^Requires-Dist: (.*?)\r?$", archive.read(path).decode(), re.MULTILINE)
        return self.needed[wheel[1]]


def requirements_of(file):
    lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def resolve(index, file, python):
    """The versions of all packages of a file for a Python version."""
    environment = {"python_version": python, "python_full_version": f"{python}.9", "extra": "", "sys_platform": "linux",
                   "platform_system": "Linux", "platform_machine": "x86_64", "implementation_name": "cpython",
                   "platform_python_implementation": "CPython", "os_name": "posix"}
    pins, waiting = {}, [(requirement, "") for requirement in requirements_of(file)]
    if file == "requirements.txt":
        waiting += [(Requirement(name), "") for name in WITH_TORCH]
    chosen, asked = {}, set()
    while waiting:
        requirement, extra = waiting.pop(0)
        name = canonicalize_name(requirement.name)
        if name in LEFT_OUT or (requirement.marker and not requirement.marker.evaluate(environment | {"extra": extra})):
            continue
        pins.setdefault(name, SpecifierSet())
        pins[name] &= requirement.specifier
        if name not in chosen or chosen[name] not in pins[name]:
            chosen[name] = choose(index, name, pins[name], python)
        for one in {"", *requirement.extras}:
            if (name, chosen[name], one) not in asked:
                asked.add((name, chosen[name], one))
                waiting += [(Requirement(text), one) for text in index.needs(name, chosen[name])]
    return chosen


def choose(index, name, specifier, python):
    try:
        installed = Version(metadata.version(name))
        if installed in specifier and index.suits(name, installed, python):
            return installed
    except metadata.PackageNotFoundError:
        pass
    return index.newest(name, specifier, python)


def lock(index, file):
    versions, lines = {}, [f"# Made by tools/lock/lock.py from {file}; not edited by hand."]
    for python in PYTHONS:
        try:
            chosen = resolve(index, file, python)
        except LookupError as error:
            lines.append(f"{WITHOUT}{python}: {error}")
            continue
        for name, version in chosen.items():
            versions.setdefault(name, {}).setdefault(version, []).append(python)
    for name in sorted(versions):
        for version, pythons in sorted(versions[name].items()):
            hashes = sorted({digest for found, _, digest, _ in index.files(name) if found == version})
            marker = "" if len(pythons) == len(PYTHONS) else "; " + " or ".join(f'python_version == "{one}"' for one in pythons)
            lines.append(f"{name}=={version}{marker} \\")
            lines += [f"    --hash=sha256:{digest} \\" for digest in hashes]
            lines[-1] = lines[-1].removesuffix(" \\")
    return "\n".join(lines) + "\n"


def check(file):
    """Complaints about a lock that does not hold what its requirements ask for."""
    path = ROOT / file.replace(".txt", ".lock")
    text = path.read_text() if path.exists() else ""
    entries = [Requirement(line.split(" \\")[0]) for line in text.splitlines() if line and line[0] not in "# "]
    problems = [] if text.count("--hash=sha256:") >= len(entries) > 0 else [f"{path.name}: no hashes"]
    for requirement in requirements_of(file):
        name = canonicalize_name(requirement.name)
        for python in (one for one in PYTHONS if f"{WITHOUT}{one}:" not in text):
            values = {"python_version": python}
            if name in LEFT_OUT or (requirement.marker and not requirement.marker.evaluate(values)):
                continue
            found = [one for one in entries if canonicalize_name(one.name) == name and (not one.marker or one.marker.evaluate(values))]
            if len(found) != 1 or not requirement.specifier.contains(str(found[0].specifier).removeprefix("==")):
                problems.append(f"{path.name}: {requirement} for Python {python} is not locked; run tools/lock/lock.py")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, and fail when a lock does not fit")
    parser.add_argument("files", nargs="*", choices=[*LOCKED, []], help="only these, e.g. requirements-bench.txt")
    options = parser.parse_args()
    if options.check:
        problems = [problem for file in LOCKED for problem in check(file)]
        print("\n".join(problems), end="\n" if problems else "")
        return 1 if problems else 0
    index = Index()
    for file in options.files or LOCKED:
        (ROOT / file.replace(".txt", ".lock")).write_text(lock(index, file))
        print("wrote", file.replace(".txt", ".lock"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
