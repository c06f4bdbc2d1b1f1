"""An outside program finds installed Lattice by find_package, builds and runs: examples/find_package."""

import os
import pathlib
import subprocess

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", ROOT / "build" / "release", "--prefix", path)
    return path


def build_example(folder, *options):
    run("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "find_package", "-B", folder, *options)
    run("cmake", "--build", folder)


def test_kernels_without_torch(prefix, tmp_path):
    build_example(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert "the same bits" in run(tmp_path / "stream")
    assert "torch" not in run("ldd", tmp_path / "stream")
    assert run(tmp_path / "stream", env={**os.environ, "LATTICE_ISA": "scalar"}).startswith("scalar: ")


def test_operators_with_torch(prefix, tmp_path):
    build_example(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix};{torch.utils.cmake_prefix_path}", "-DWITH_TORCH=ON")
    assert "by backward" in run(tmp_path / "gradient")


def test_only_public_headers_are_installed(prefix):
    headers = {str(path.relative_to(prefix / "include")) for path in prefix.rglob("*.h")}
    assert {"lattice/kernels/registry.h", "lattice/ops/recurrence.h"} <= headers
    assert not [name for name in headers if "-inl" in name or "dispatch" in name]
