"""An outside program finds installed Lattice by find_package, builds and runs: examples/find_package and examples/runtime."""

import os
import pathlib
import shutil
import subprocess

import pytest
import torch
from cli_program import ok, train, write_text
from torch_layouts import like_the_cuda_build, stand_in

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH = pathlib.Path(torch.__file__).parent


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
    """Beside a CMake package of torch that fails, as that of the CUDA build does where no CUDA toolkit is installed."""
    layout = like_the_cuda_build(TORCH, tmp_path / "torch")
    build_example(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix};{layout}/share/cmake", "-DWITH_TORCH=ON")
    assert "by backward" in run(tmp_path / "build" / "gradient")


@pytest.mark.parametrize("option", [f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}", f"-DLATTICE_TORCH_DIR={TORCH}"])
def test_torch_is_found_by_prefix_and_by_directory(prefix, tmp_path, option):
    source = ROOT / "examples" / "find_package"
    said = run("cmake", "-G", "Ninja", "-S", source, "-B", tmp_path, "-DWITH_TORCH=ON", f"-Dlattice_ROOT={prefix}", option)
    assert f"of {TORCH}" in said


def test_operators_refuse_another_torch(prefix, tmp_path):
    other = stand_in(tmp_path / "torch", "2.14.1")
    command = ["cmake", "-G", "Ninja", "-S", ROOT / "examples" / "find_package", "-B", tmp_path / "build", "-DWITH_TORCH=ON",
               f"-DCMAKE_PREFIX_PATH={prefix};{other}"]
    failed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = " ".join(failed.stderr.split())
    assert failed.returncode != 0 and "torch 2.13.0 is needed exactly" in said and "holds 2.14.1" in said
    assert "LATTICE_TORCH_DIR" in said


def test_the_runner_and_its_configurations_are_installed(prefix, tmp_path):
    program = prefix / "bin" / "lattice-run"
    assert "parameters" in run(program, "inspect", "--config", "tiny", cwd=tmp_path)
    assert "parameters" in run(program, "inspect", "--config", "configs/110m.toml", cwd=tmp_path)
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved)
    assert "parameters" in run(moved / "bin" / "lattice-run", "inspect", "--config", "tiny", cwd="/")


def test_runtime_from_c(prefix, tmp_path):
    train(write_text(tmp_path / "text.txt"), tmp_path / "run", "train.steps=30")
    checkpoint = tmp_path / "run" / "checkpoints" / "latest"
    build_example(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", example="runtime")
    program = tmp_path / "build" / "generate"
    assert "torch" not in run("ldd", program)
    expected = ok("generate", "--model", checkpoint, "--prompt", "the memory", "--tokens", 20, "--temperature", 0)
    assert run(program, checkpoint, "the memory", 20) == expected.rstrip("\n")
    failed = subprocess.run([program, tmp_path / "none", "x"], capture_output=True, text=True)
    assert failed.returncode == 1 and f"no model at {tmp_path / 'none'}" in failed.stderr


def test_memory_of_ones_own(prefix, tmp_path):
    """examples/new_memory, built outside of the tree, is a memory that the programs of the tree take."""
    build_example(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", example="new_memory")
    plugin = tmp_path / "build" / "libsurprise.so"
    train(write_text(tmp_path / "text.txt"), tmp_path / "run", "model.mixer=surprise", args=("--plugin", plugin))
    assert ok("generate", "--model", tmp_path / "run", "--plugin", plugin, "--tokens", 5, "--seed", 1)


def test_only_public_headers_are_installed(prefix):
    headers = {str(path.relative_to(prefix / "include")) for path in prefix.rglob("*.h")}
    assert {"lattice/kernels/registry.h", "lattice/kernels/plugin.h", "lattice/ops/recurrence.h",
            "lattice/runtime/lattice.h"} <= headers
    # Of the kernels' insides what a rule is compiled with, and no rule of ours.
    inside = {name for name in headers if "-inl" in name or "dispatch" in name}
    engine = {f"lattice/kernels/engine/{name}-inl.h" for name in ("cell", "engine", "update", "vec", "workspace")}
    assert inside == {"lattice/kernels/dispatch.h", "lattice/kernels/lanes-inl.h", *engine}
