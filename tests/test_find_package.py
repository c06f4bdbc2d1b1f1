"""An outside program finds installed Lattice by find_package, builds and runs: examples/find_package and examples/runtime."""

import os
import pathlib
import subprocess

import pytest
import torch
from cli_program import ok, train, write_text

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


def build_example(folder, *options, example="find_package"):
    run("cmake", "-G", "Ninja", "-S", ROOT / "examples" / example, "-B", folder, *options)
    run("cmake", "--build", folder)


def test_kernels_without_torch(prefix, tmp_path):
    build_example(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert "the same bits" in run(tmp_path / "stream")
    assert "torch" not in run("ldd", tmp_path / "stream")
    assert run(tmp_path / "stream", env={**os.environ, "LATTICE_ISA": "scalar"}).startswith("scalar: ")


def test_operators_with_torch(prefix, tmp_path):
    build_example(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix};{torch.utils.cmake_prefix_path}", "-DWITH_TORCH=ON")
    assert "by backward" in run(tmp_path / "gradient")


def test_runtime_from_c(prefix, tmp_path):
    train(write_text(tmp_path / "text.txt"), tmp_path / "run", "train.steps=30")
    checkpoint = tmp_path / "run" / "checkpoints" / "latest"
    build_example(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", example="runtime")
    program = tmp_path / "build" / "generate"
    assert "torch" not in run("ldd", program)
    expected = ok("generate", "--model", checkpoint, "--prompt", "the memory", "--tokens", 20, "--temperature", 0)
    assert run(program, checkpoint, "the memory", 20) == expected.rstrip("\n")
    failed = subprocess.run([program, tmp_path / "none", "x"], capture_output=True, text=True)
    assert failed.returncode == 1 and "none" in failed.stderr


def test_only_public_headers_are_installed(prefix):
    headers = {str(path.relative_to(prefix / "include")) for path in prefix.rglob("*.h")}
    assert {"lattice/kernels/registry.h", "lattice/ops/recurrence.h", "lattice/runtime/lattice.h"} <= headers
    assert not [name for name in headers if "-inl" in name or "dispatch" in name]
