"""cmake/LatticeTorch.cmake: a program is built against torch's CPU and CUDA builds alike, and another version is refused.

The torch here is a stand-in of a few lines. `./lattice test --cuda-wheel` builds the project against the real CUDA build.
"""

import os
import pathlib
import re
import subprocess

import pytest
from torch_layouts import stand_in

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = f"""
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES CXX)
include({ROOT}/cmake/LatticeTorch.cmake)
lattice_find_torch(2.13.0 problem ${{PLACES}})
if(problem)
  message(FATAL_ERROR "${{problem}}")
endif()
add_executable(program main.cc)
target_link_libraries(program PRIVATE lattice::torch)
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "main.cc").write_text("#include <ATen/ATen.h>\nint main() { return torch_cpu() + c10(); }\n")
    return tmp_path


def cmake(*args, **options):
    return subprocess.run(["cmake", *map(str, args)], capture_output=True, text=True, timeout=120, **options)


def configure(project, *options, **environment):
    done = cmake("-G", "Ninja", "-S", project, "-B", project / "build", *options, env={**os.environ, **environment})
    return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)


@pytest.mark.parametrize("place", ["", "share/cmake", ".."])
def test_links_torch_cpu_alone_though_its_cuda_libraries_are_missing(project, place):
    torch = stand_in(project / "site-packages" / "torch", "2.13.0")
    status, said = configure(project, f"-DCMAKE_PREFIX_PATH={torch / place}")
    assert status == 0 and f"torch: 2.13.0 of {torch}" in said
    built = cmake("--build", project / "build")
    assert built.returncode == 0, built.stdout
    needed = subprocess.run(["readelf", "-d", project / "build" / "program"], capture_output=True, text=True).stdout
    assert "[libtorch_cpu.so]" in needed and "[libc10.so]" in needed
    assert "[libtorch.so]" not in needed and "cuda" not in needed
    # With the missing library in place the program runs.
    env = {**os.environ, "LD_LIBRARY_PATH": str(torch)}
    assert subprocess.run([project / "build" / "program"], env=env).returncode == 42


def test_the_given_directory_is_the_only_one(project):
    stand_in(project / "one", "2.13.0")
    status, said = configure(project, f"-DCMAKE_PREFIX_PATH={project / 'one'}", f"-DLATTICE_TORCH_DIR={project / 'two'}")
    assert status != 0 and f"no torch 2.13.0 (lib/libtorch_cpu.so and its headers) was found; looked at: {project / 'two'}" in said


def test_the_environment_names_places_too(project):
    torch = stand_in(project / "torch", "2.13.0")
    status, said = configure(project, CMAKE_PREFIX_PATH=f"{project / 'none'}:{torch}")
    assert status == 0 and f"torch: 2.13.0 of {torch}" in said


def test_another_version_is_refused_with_both_named(project):
    torch = stand_in(project / "torch", "2.14.1")
    status, said = configure(project, f"-DPLACES={torch}")
    assert status != 0 and "torch 2.13.0 is needed exactly" in said and f"{torch} holds 2.14.1" in said
