"""The launcher on other Linux systems: their package managers are recognised by name, and the line to run is printed.

Like test_launcher.py, on a copy of the launcher with stand-ins for the system's programs, and with an os-release of the
system. What CMake says about compilers and libraries that are missing or too old is asked of CMake itself.
"""

import re
import subprocess

import pytest
from test_launcher import ROOT, Tree, tree  # noqa: F401  (a fixture)

PACKAGES = [line.split()[:5] for line in (ROOT / "tools/launcher/packages.txt").read_text().splitlines() if line and line[0] != "#"]
# By manager: the content of os-release, the program that is asked, its stand-in (everything but cmake is installed), the line.
SYSTEMS = {
    "dnf": ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "rpm", "[[ ${@: -1} != ccache ]]", "dnf install -y ccache"),
    "pacman": ("ID=arch\n", "pacman", "echo ccache; exit 127", "pacman -S --needed --noconfirm ccache"),
    "zypper": ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "rpm", "[[ ${@: -1} != ccache ]]",
               "zypper --non-interactive install ccache"),
    "apk": ("ID=alpine\n", "apk", "[[ ${@: -1} != ccache ]]", "apk add ccache"),
}


def lines(text):
    return [line.strip().removeprefix("sudo ") for line in text.splitlines()]


@pytest.mark.parametrize("manager", SYSTEMS)
def test_a_missing_package_gives_the_line_of_the_system_and_the_build_goes_on(tree: Tree, manager):  # noqa: F811
    release, program, body, line = SYSTEMS[manager]
    (tree.path / "os-release").write_text(release)
    tree.stand_in(program, body)
    result = tree.run("setup", LATTICE_OS_RELEASE=str(tree.path / "os-release"))
    assert result.returncode == 0, result.stderr
    assert line in lines(result.stderr)
    assert tree.calls() == ["venv", "cmake --preset", "cmake --build"]


def test_where_nothing_is_missing_nothing_is_said(tree: Tree):  # noqa: F811
    (tree.path / "os-release").write_text("ID=alpine\n")
    tree.stand_in("apk", "exit 0")
    assert "missing" not in tree.run("setup", LATTICE_OS_RELEASE=str(tree.path / "os-release")).stderr


def test_an_unknown_system_is_known_by_its_package_manager(tree: Tree):  # noqa: F811
    """None is asked for here: which one is found depends on what this machine has, so that all are stand-ins."""
    (tree.path / "os-release").write_text("ID=mine\n")
    script = f'ROOT={tree.path}; PACKAGES={tree.path}/tools/launcher/packages.txt; . "$ROOT/tools/launcher/systems.sh"; package_manager'
    for name in ("dnf", "pacman", "zypper", "apk"):
        folder = tree.path / f"only-{name}"
        folder.mkdir()
        (folder / name).symlink_to("/bin/true")
        for tool in ("sed", "bash"):
            (folder / tool).symlink_to(f"/usr/bin/{tool}")
        environment = {"PATH": str(folder), "LATTICE_OS_RELEASE": str(tree.path / "os-release")}
        assert subprocess.run(["/bin/bash", "-c", script], env=environment, capture_output=True, text=True).stdout == f"{name}\n"


def test_without_the_tools_of_a_build_the_set_up_ends(tree: Tree):  # noqa: F811
    (tree.path / "os-release").write_text("ID=alpine\n")
    (tree.path / "stand-ins" / "cmake").unlink()
    tree.stand_in("apk", "exit 1")
    names = ["bash", "sed", "awk", "readlink", "mkdir", "flock", "find", "cat", "sha256sum", "touch", "dirname"]
    only = tree.path / "only"
    only.mkdir()
    for name in names:
        (only / name).symlink_to(f"/usr/bin/{name}")
    (only / "apk").symlink_to(tree.path / "stand-ins" / "apk")
    result = tree.run("setup", LATTICE_OS_RELEASE=str(tree.path / "os-release"), PATH=str(only))
    assert result.returncode == 1 and "error: cmake is missing" in result.stderr
    assert any(line.startswith("apk add cmake g++ samurai") for line in lines(result.stderr))


def test_every_system_has_a_name_for_every_package():
    assert all(len(row) == 5 and all(re.fullmatch(r"-|[a-z0-9][a-z0-9+._-]*", name) for name in row) for row in PACKAGES)
    assert [row[0] for row in PACKAGES].count("libhwy-dev") == 1


def configure(folder, *options, **settings):
    """What CMake says about requirements, and nothing else of the project, when its variables are set to these."""
    assignments = "\n".join(f"set({name} {value})" for name, value in settings.items())
    (folder / "CMakeLists.txt").write_text(
        f'''cmake_minimum_required(VERSION 3.22)
project(requirements LANGUAGES CXX)
{assignments}
include({ROOT}/cmake/LatticeRequirements.cmake)
lattice_check_requirements()
''')
    result = subprocess.run(["cmake", "-S", folder, "-B", folder / "build", *options], capture_output=True, text=True, timeout=120)
    return result.returncode, re.sub(r"\s+", " ", result.stderr)


@pytest.mark.parametrize("compiler, version, accepted", [("GNU", "11.4.0", False), ("GNU", "12.2.0", True), ("Clang", "13.0.1", False),
                                                         ("Clang", "14.0.6", True)])
def test_old_compilers_are_refused_by_version(tmp_path, compiler, version, accepted):
    status, said = configure(tmp_path, CMAKE_CXX_COMPILER_ID=compiler, CMAKE_CXX_COMPILER_VERSION=version)
    assert (status == 0) == accepted, said
    assert accepted or f"found {compiler} {version}" in said and "needed GCC 12 or Clang 14" in said


def test_old_and_missing_libraries_are_named_together(tmp_path):
    old = tmp_path / "old" / "CLI"
    old.mkdir(parents=True)
    (old / "CLI.hpp").touch()
    (old / "Version.hpp").write_text("#define CLI11_VERSION_MAJOR 1\n#define CLI11_VERSION_MINOR 9\n#define CLI11_VERSION_PATCH 0\n")
    options = [f"-DCMAKE_INCLUDE_PATH={tmp_path / 'old'}", "-DLATTICE_Highway_INCLUDE=", "-DLATTICE_SentencePiece_LIBRARY="]
    status, said = configure(tmp_path, *options)
    assert status != 0
    assert f"CLI11: found 1.9.0 in {tmp_path / 'old'}, needed 2.1.2 or newer (Debian's libcli11-dev)" in said
    assert "Highway: found no hwy/highway.h, needed 1.0.3 or newer" in said
    assert "but no library sentencepiece" in said
    assert "CLI11" not in configure(tmp_path, *options, "-DLATTICE_CHECK_VERSIONS=OFF")[1]


def test_big_endian_machines_are_refused_by_name(tmp_path):
    status, said = configure(tmp_path, CMAKE_CXX_BYTE_ORDER="BIG_ENDIAN")
    assert status != 0 and "is big-endian" in said
    compiled = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__",
                               "-x", "c++", ROOT / "src/base/byte_order.h"], capture_output=True, text=True)
    assert compiled.returncode != 0 and "Lattice does not run on big-endian machines" in compiled.stderr
    for user in ("safetensors.cc", "gguf.cc", "checksum.cc"):
        assert '#include "base/byte_order.h"' in (ROOT / "src/io" / user).read_text()
