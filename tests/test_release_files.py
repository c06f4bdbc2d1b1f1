"""`./lattice package`: what can be checked in seconds. `./lattice test --package` builds and compares the programs."""

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.search(r"project\(lattice VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def launch(*args):
    return subprocess.run([ROOT / "lattice", "package", *map(str, args)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is no git repository")
    out = tmp_path_factory.mktemp("first")
    made = launch("--source", "--out", out)
    assert made.returncode == 0, made.stderr
    return out / f"lattice-{VERSION}.tar.gz"


def test_the_source_tarball_has_the_same_bytes_twice(tarball, tmp_path):
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    assert launch("--source", "--out", tmp_path).stdout == f"{digest}  {tarball.name}\n"
    assert (tmp_path / "SHA256SUMS").read_text().startswith(digest)


def test_the_source_tarball_is_the_commit(tarball):
    with tarfile.open(tarball) as archive:
        members = archive.getmembers()
    committed = subprocess.run(["git", "-C", ROOT, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True).stdout.split("\n")
    files = [member.name.removeprefix(f"lattice-{VERSION}/") for member in members if not member.isdir()]
    assert sorted(files) == sorted(name.strip('"') for name in committed if name)
    assert {member.uname for member in members} == {"root"} and len({member.mtime for member in members}) == 1
    assert next(member for member in members if member.name.endswith("/lattice") and member.isfile()).mode & 0o111


@pytest.mark.parametrize("words, said", [(["--rpm"], "unknown argument '--rpm'"), (["--out"], "--out needs a directory")])
def test_wrong_use_is_told(words, said):
    result = launch(*words)
    assert result.returncode == 2 and said in result.stderr and result.stdout == ""


def test_the_manual_page_names_every_subcommand():
    page = (ROOT / "tools/package/lattice-run.1.in").read_text()
    said = subprocess.run([ROOT / "build/release/bin/lattice-run", "--help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^  ([a-z]+)  ", said.partition("Subcommands:")[2], re.M)
    assert "serve" in commands and commands == re.findall(r"^\.B ([a-z]+)$", page, re.M)
