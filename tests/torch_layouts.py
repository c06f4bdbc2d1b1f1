"""Directories that look like an installed torch, for the tests of what CMake makes of them."""

import pathlib
import subprocess

# The CMake package of the CUDA build stops where no CUDA toolkit is installed.
FAILING_CONFIG = 'message(FATAL_ERROR "uses CUDA but I cannot find the CUDA libraries")\n'


def write_version(include, version):
    header = include / "torch" / "headeronly" / "version.h"
    header.parent.mkdir(parents=True)
    parts = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
    header.write_text("".join(f"#define TORCH_VERSION_{name} {value}\n" for name, value in parts))


def write_cmake_package(root):
    for package in ("Torch", "Caffe2"):
        folder = root / "share" / "cmake" / package
        folder.mkdir(parents=True)
        (folder / f"{package}Config.cmake").write_text(FAILING_CONFIG)


def like_the_cuda_build(torch, root):
    """Links to the headers and libraries of `torch` (a directory), beside a CMake package that fails."""
    root.mkdir()
    for name in ("include", "lib"):
        (root / name).symlink_to(pathlib.Path(torch) / name)
    write_cmake_package(root)
    return root


def stand_in(root, version):
    """A torch of two functions. As in the CUDA build, libtorch_cpu needs a library that is not installed."""
    write_version(root / "include", version)
    write_cmake_package(root)
    (root / "include" / "torch" / "csrc" / "api" / "include").mkdir(parents=True)
    (root / "include" / "ATen").mkdir()
    (root / "include" / "ATen" / "ATen.h").write_text("int torch_cpu();\nint c10();\n")
    lib = root / "lib"
    lib.mkdir()

    def library(name, source, *needed):
        command = ["c++", "-shared", "-fPIC", "-x", "c++", "-", "-x", "none", f"-Wl,-soname,lib{name}.so", "-o", lib / f"lib{name}.so"]
        subprocess.run([*command, f"-L{lib}", f"-Wl,-rpath,{lib}", *needed], input=source, text=True, check=True)

    library("cudart", "int cuda() { return 40; }")
    library("c10", "int c10() { return 2; }")
    library("torch_cpu", "int cuda(); int torch_cpu() { return cuda(); }", "-lcudart")
    library("torch_cuda", "int torch_cuda() { return 0; }")
    library("torch", "", "-Wl,--no-as-needed", "-ltorch_cpu", "-ltorch_cuda")
    (lib / "libcudart.so").rename(root / "libcudart.so")
    return root
