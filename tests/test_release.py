"""What ships: programs with the mitigations of the build, locked Python packages, a list of all parts, and a threat model whose
promises name tests that exist."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_program import ROOT

BUILD = ROOT / "build" / "release"
PROGRAMS = ["bin/lattice-run", "bin/lattice"]
LIBRARIES = ["lib/liblattice_ops.so"]


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def hardened():
    cache = (BUILD / "CMakeCache.txt").read_text()
    return re.search(r"^LATTICE_HARDEN:BOOL=(ON|1|TRUE|YES)$", cache, re.MULTILINE)


@pytest.mark.parametrize("name", PROGRAMS + LIBRARIES)
def test_programs_are_hardened(name):
    """Read off the files: full RELRO, no executable stack, position-independent, calls of the stack protector and of glibc's
    checked functions."""
    if not hardened():
        pytest.skip("this build was not configured with LATTICE_HARDEN=ON")
    path = BUILD / name
    header, segments, dynamic = output("readelf", "-hW", path), output("readelf", "-lW", path), output("readelf", "-dW", path)
    assert re.search(r"Type:\s+DYN", header), "not position-independent"
    assert "GNU_RELRO" in segments and re.search(r"BIND_NOW|FLAGS.*NOW", dynamic), "no full RELRO"
    assert re.search(r"GNU_STACK.* RW ", segments), "an executable stack"
    if name in PROGRAMS:
        assert re.search(r"FLAGS_1.*PIE", dynamic)
    symbols = output("readelf", "--dyn-syms", "-W", path)
    assert "__stack_chk_fail" in symbols
    if name in PROGRAMS:
        assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")), "no checked function of glibc"


def test_every_file_is_compiled_with_the_mitigations():
    if not hardened():
        pytest.skip("this build was not configured with LATTICE_HARDEN=ON")
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    ours = [one["command"] for one in commands if "/src/" in one["file"]]
    assert len(ours) > 50
    for flag in ("-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=3"):
        assert all(flag in command for command in ours), flag


def lock(*args):
    return subprocess.run([sys.executable, ROOT / "tools" / "lock" / "lock.py", *args], capture_output=True, text=True)


def test_python_packages_are_locked():
    done = lock("--check")
    assert done.returncode == 0, done.stdout + done.stderr
    for path in ROOT.glob("requirements*.lock"):
        text = path.read_text()
        entries = re.findall(r"^[a-z0-9][\w.-]*==[^\n]*\\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", text, re.MULTILINE)
        assert len(entries) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE)), f"{path.name} has an entry without hashes"
        assert "torch==" not in text


def test_the_launcher_installs_by_hash():
    script = (ROOT / "tools" / "launcher" / "venv.sh").read_text()
    assert re.search(r"^pip_install\(\) .*--require-hashes --no-deps -r", script, re.MULTILINE)


def test_a_file_with_another_hash_is_refused(tmp_path):
    """By pip itself, from a directory without a network."""
    import zipfile
    wheel = tmp_path / "small_example-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small_example.py", "")
        archive.writestr("small_example-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small-example\nVersion: 1.0\n")
        archive.writestr("small_example-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("small_example-1.0.dist-info/RECORD", "")
    (tmp_path / "a.lock").write_text(f"small-example==1.0 --hash=sha256:{'0' * 64}\n")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--find-links", str(tmp_path),
               "--target", str(tmp_path / "to"), "--require-hashes", "--no-deps", "-r", str(tmp_path / "a.lock")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and "HASH" in (done.stdout + done.stderr).upper()
    assert not (tmp_path / "to" / "small_example.py").exists()


def test_the_bill_of_materials_lists_what_is_linked_and_installed(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "tools" / "sbom" / "sbom.py", "--out", tmp_path / "lattice.cdx.json"],
                          capture_output=True, text=True, timeout=300)
    document = json.loads((tmp_path / "lattice.cdx.json").read_text())
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.5"
    names = {part["name"] for part in document["components"]}
    assert {"torch", "numpy", "pytest"} <= names
    if not Path("/etc/debian_version").exists():
        return
    assert {"highway", "sentencepiece", "nlohmann-json3", "cli11", "glibc"} <= names
    if Path("/etc/debian_version").read_text().startswith("12"):
        assert done.returncode == 0, done.stderr  # other releases may split packages otherwise
    references = [part["bom-ref"] for part in document["components"]]
    assert len(set(references)) == len(references)


def named_tests(text):
    """`Suite.Test` and `Suite` of C++, `src/..._test.cc`, `fuzz/...`, `tests/test_....py`, `tests/test_....py::test_...`."""
    return (set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", text)),
            set(re.findall(r"`((?:src|fuzz|tests)/[\w/.]+\.(?:cc|py))(?:::(test_\w+))?`", text)))


def cpp_tests():
    found = set()
    for path in (ROOT / "src").rglob("*_test.cc"):
        found |= {f"{suite}.{test}" for suite, test in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}
    return found


def test_the_threat_model_names_tests_that_exist():
    tests, files = named_tests((ROOT / "SECURITY.md").read_text())
    assert len(tests) >= 40 and len(files) >= 10
    assert tests <= cpp_tests(), tests - cpp_tests()
    for path, test in files:
        assert (ROOT / path).is_file(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path} has no {test}"


def promises():
    """The promises of the threat model: rows of its tables whose last column is for tests."""
    text = (ROOT / "SECURITY.md").read_text()
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]
        if "test" in rows[0][-1]:
            yield from rows[2:]


def test_every_promise_of_the_threat_model_names_a_test():
    rows = list(promises())
    assert len(rows) >= 45
    attacks = output(sys.executable, ROOT / "tools" / "torture", "serve", "--list")
    for row in rows:
        named = re.findall(r"`([^`]+)`", row[-1])
        known = [name for name in named if re.match(r"[A-Z]\w+(\.[A-Z]\w+)?$|(src|fuzz|tests)/", name)
                 or name.startswith("./lattice t") or re.search(rf"^{re.escape(name)}\b", attacks, re.MULTILINE)]
        assert known, f"no test for: {row[0]}"


def test_a_promise_without_a_test_is_found():
    assert named_tests("| x | `NoSuch.Test` |")[0] - cpp_tests() == {"NoSuch.Test"}
