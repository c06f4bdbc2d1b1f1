"""The Python package around the operators: what an import loads, another torch, the command, the wheel's metadata."""

import ast
import os
import re
import subprocess
import sys

import pytest
import torch
from cli_program import ROOT

PYTHON = ROOT / "python"


def python(code, *, check=True, **environment):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=PYTHON,
                            env={**os.environ, **environment})
    assert not check or result.returncode == 0, result.stderr
    return result


def test_operators_load_with_torch_or_at_their_first_use():
    python("import torch, lattice; torch.ops.lattice.scan")
    python("import lattice, torch; lattice.scan; torch.ops.lattice.scan")
    python("import lattice.ops, torch; torch.ops.lattice.scan")
    python("import lattice, sys; assert 'torch' not in sys.modules; assert 'deltanet' in lattice.rules()")
    missing = python("import lattice; lattice.nonsense", check=False)
    assert "AttributeError: module 'lattice' has no attribute 'nonsense'" in missing.stderr


def test_an_import_costs_little_beyond_torch(tmp_path):
    """Processor time, the least of three, with compiled Python as an installed package has it: about 21 ms."""
    code = "import torch, time; t = time.process_time(); import lattice; print(time.process_time() - t)"
    times = [float(python(code, PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=str(tmp_path)).stdout) for _ in range(3)]
    assert min(times) < 0.05, times


def test_another_torch_is_refused_by_both_versions(tmp_path):
    library = tmp_path / "liblattice_ops.so"
    library.touch()
    library.with_suffix(".torch").write_text("2.99.1\n")
    refused = python("import torch, lattice", check=False, LATTICE_LIBRARY=str(library))
    (error,) = [line for line in refused.stderr.splitlines() if line.startswith("ImportError")]
    assert "built for torch 2.99.1" in error and f"torch {torch.__version__} is installed" in error
    python("import lattice.runtime", LATTICE_LIBRARY=str(library))


def test_a_missing_library_says_where_it_was_looked_for(tmp_path):
    missing = python("import lattice.runtime", check=False, LATTICE_RUNTIME_LIBRARY=str(tmp_path / "none.so"))
    assert "ImportError" in missing.stderr and str(tmp_path / "none.so") in missing.stderr and "./lattice setup" in missing.stderr


def test_the_command_lists_and_runs_both_programs():
    def command(*words):
        return subprocess.run([sys.executable, "-m", "lattice.cli", *words], capture_output=True, text=True, timeout=120, cwd=PYTHON)

    listed = command("--help")
    assert listed.returncode == 0 and {"train", "generate", "serve", "eval"} <= set(re.findall(r"^  (\w+) ", listed.stdout, re.M))
    assert command().returncode == 2
    assert re.fullmatch(r"lattice \d+\.\d+\.\d+\n", command("--version").stdout)
    assert "parameters" in command("inspect", "--config", "tiny").stdout  # lattice-run
    assert "--data" in command("train", "--help").stdout  # the program with torch
    # Suggested commands are those of an installed package, not of the source tree.
    for words in (("generate", "--help"), ("train", "--help"), ("inspect", "--config", "tiny", "--text", "x")):
        done = command(*words)
        said = done.stdout + done.stderr
        assert f"lattice {words[0]} " in said and "./lattice" not in said, said
    wrong = command("nonsense")
    assert wrong.returncode == 2 and "nonsense" in wrong.stderr


def test_versions_agree():
    project = (ROOT / "pyproject.toml").read_text()
    pin = re.search(r"^torch==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)[1]
    assert project.count(f'"torch=={pin}"') == 2
    version = re.search(r"project\(lattice VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f'__version__ = "{version}"' in (PYTHON / "lattice" / "__init__.py").read_text()


@pytest.mark.parametrize("path", sorted((PYTHON / "lattice").rglob("*.py")), ids=lambda p: p.relative_to(PYTHON).as_posix())
def test_the_syntax_is_that_of_the_oldest_python(path):
    ast.parse(path.read_text(), feature_version=(3, 10))
