"""The launcher: what it says, its exit codes, and when it does which set-up step.

The set-up runs on a copy of the launcher with stand-ins for dpkg-query, Python and CMake that record their calls, so
that nothing is installed and no step takes time.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN_COMMANDS = ["test", "bench", "doctor", "torture", "fuzz", "setup", "format", "package", "clean"]


def run(launcher, *args, **options):
    return subprocess.run([launcher, *args], capture_output=True, text=True, timeout=60, **options)


def test_help_lists_every_subcommand_with_examples():
    result = run(ROOT / "lattice", "--help")
    assert result.returncode == 0 and result.stderr == ""
    listed = re.findall(r"^  (\w+)  ", result.stdout, re.MULTILINE)
    assert {"demo", "python", *OWN_COMMANDS} <= set(listed)
    assert "Examples\n  ./lattice demo" in result.stdout


def test_help_lists_the_subcommands_of_the_program():
    program = run(ROOT / "build" / "release" / "bin" / "lattice", "--help")
    commands = re.findall(r"^  ([a-z]\w*)  ", program.stdout.partition("Subcommands:")[2], re.MULTILINE)
    listed = re.findall(r"^  (\w+)  ", (ROOT / "tools" / "launcher" / "help.txt").read_text(), re.MULTILINE)
    assert "demo" in commands and set(commands) <= set(listed)


@pytest.mark.parametrize("command", OWN_COMMANDS)
def test_subcommand_help_shows_an_example(command):
    result = run(ROOT / "lattice", command, "--help")
    assert result.returncode == 0
    assert "Usage: ./lattice " + command in result.stdout and "Example: ./lattice " + command in result.stdout


@pytest.mark.parametrize("args", [["nonsense"], ["--nonsense"], ["../test"], ["test", "--nonsense"],
                                  ["bench", "nonsense"], ["clean", "everything"], ["doctor", "now"], []])
def test_wrong_use_exits_with_2_and_leaves_stdout_clean(args):
    result = run(ROOT / "lattice", *args)
    assert result.returncode == 2
    assert result.stdout == "" and result.stderr != ""


def test_a_symlink_from_another_directory_works(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "lattice")
    result = run(tmp_path / "link", "--version", cwd=tmp_path)
    assert re.fullmatch(r"lattice \d+\.\d+\.\d+\n", result.stdout)


def test_doctor_reports_json_and_a_bad_isa():
    facts = json.loads(run(ROOT / "lattice", "doctor", "--json", env={**os.environ, "LATTICE_ISA": ""}).stdout)
    assert facts["isa_in_effect"] == facts["isa_available"].split()[-1]
    capped = json.loads(run(ROOT / "lattice", "doctor", "--json", env={**os.environ, "LATTICE_ISA": "scalar"}).stdout)
    assert capped["isa_in_effect"] == "scalar"
    bad = run(ROOT / "lattice", "doctor", env={**os.environ, "LATTICE_ISA": "mmx"})
    assert bad.returncode == 1 and "LATTICE_ISA is 'mmx', but this CPU can run: scalar" in bad.stdout


def test_doctor_finds_the_instruction_sets_that_the_program_finds():
    facts = json.loads(run(ROOT / "lattice", "doctor", "--json").stdout)
    version = run(ROOT / "build" / "release" / "bin" / "lattice-run", "--version").stdout
    assert version.strip().endswith(f": {facts['isa_available']}")


def test_doctor_leaves_no_row_empty():
    facts = json.loads(run(ROOT / "lattice", "doctor", "--json").stdout)
    assert all(str(value) for value in facts.values() if value != []), facts
    assert {"cpu", "torch", "set_up", "build"} <= set(facts)


@pytest.mark.parametrize("word, meant", [("trian", "train"), ("sreve", "serve"), ("gen", "generate"), ("benchh", "bench"),
                                         ("reprodce", "reproduce")])
def test_a_misspelt_subcommand_gets_a_suggestion(word, meant):
    result = run(ROOT / "lattice", word)
    assert result.returncode == 2 and f"unknown subcommand '{word}'; did you mean {meant}?" in result.stderr


@pytest.mark.parametrize("word", ["nonsense", "x", "qq"])
def test_a_word_like_no_subcommand_gets_none(word):
    assert "did you mean" not in run(ROOT / "lattice", word).stderr


@pytest.mark.parametrize("words", [["serve"], ["bench", "scan"], ["bench", "rules"], ["bench", "chunk"], ["bench", "decode"],
                                   ["bench", "serve"], ["bench", "train"]], ids=" ".join)
def test_help_calls_a_command_what_users_type(words):
    """Without the launcher's set-up: as it starts the program."""
    if words[0] == "serve":
        command = ["bash", "-c", 'exec -a ./lattice "$0" serve --help', ROOT / "build" / "release" / "bin" / "lattice-run"]
        assert 'exec -a ./lattice "$ROOT/build/release/bin/lattice-run" serve' in (ROOT / "tools/launcher/commands.sh").read_text()
    else:
        command = [sys.executable, ROOT / "bench" / words[1] / "bench.py", "--help"]
    result = run(*command)
    assert result.returncode == 0, result.stderr
    assert re.search(rf"^usage: \./lattice {' '.join(words)}", result.stdout, re.MULTILINE | re.IGNORECASE)
    assert "bench.py" not in result.stdout


STAND_INS = {
    "dpkg-query": 'printf "%s\\n" $PRESENT | sed "s/$/ installed/"',
    "apt-get": 'echo "apt-get $*" >>"$CALLS"; exit 1',
    "dpkg": "exit 0",
    "python3.11": """
        [[ $2 == *print* ]] && echo "$VERSION"
        [[ $1 == -c || $1 == --version ]] && exit 0             # asked whether it is a Python with venv
        echo "venv" >>"$CALLS"; echo "$*" >"$CALLS.venv"
        mkdir -p "${@: -1}/bin" "${@: -1}/site"
        cp "$(dirname "$0")/venv-python" "${@: -1}/bin/python" """,
    "venv-python": """
        case $* in
          *version_info*) echo "$VENV_VERSION" ;;
          *purelib*) echo "$(dirname "$0")/../site" ;;
          *"index versions torch") echo "Available versions: 2.14.1, $OFFERED, 2.12.1" ;;
          *" install "*) echo "$*" >>"$CALLS.pip" ;;
        esac""",
    "cmake": """
        echo "cmake $1" >>"$CALLS"
        [[ -e $FAIL ]] && { echo "the compiler's last words"; exit 1; }
        mkdir -p build/release/bin && touch build/release/build.ninja
        printf '#!/bin/bash\\nprintf "<%%s>" "$@"\\nexit 7\\n' >build/release/bin/lattice
        chmod +x build/release/bin/lattice""",
}


class Tree:
    """A copy of the launcher in a directory of its own, readable by everyone."""

    def __init__(self, path):
        self.path, self.calls_file, self.fail = path, path / "calls", path / "fail"
        for name in ["lattice", "requirements.txt", "requirements.lock", "CMakeLists.txt", "CMakePresets.json"]:
            shutil.copy(ROOT / name, path)
        shutil.copytree(ROOT / "tools" / "launcher", path / "tools" / "launcher")
        for name in ["src", "cmake", "bench", "examples", "fuzz", "stand-ins", "tools/torture/preload"]:
            (path / name).mkdir(parents=True)
        for name, body in STAND_INS.items():
            self.stand_in(name, body)
        lines = (path / "tools" / "launcher" / "packages.txt").read_text().splitlines()
        self.packages = [line.split()[0] for line in lines if line and not line.startswith("#")]

    def run(self, *args, present=None, prefix=(), offered="2.13.0", **more):
        env = {"PATH": f"{self.path}/stand-ins:/usr/bin:/bin", "CALLS": str(self.calls_file), "FAIL": str(self.fail),
               "PRESENT": " ".join(self.packages if present is None else present), "OFFERED": offered, **more}
        self.calls_file.unlink(missing_ok=True)
        return run(*prefix, self.path / "lattice", *args, env=env, cwd="/")

    def calls(self):
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


    def stand_in(self, name, body):
        (self.path / "stand-ins" / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.path / "stand-ins" / name).chmod(0o755)


@pytest.fixture
def tree():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Tree(pathlib.Path(name))


def test_first_call_sets_up_and_later_calls_start_at_once(tree):
    first = tree.run("demo", "two words", "")
    assert first.returncode == 7 and first.stdout == "<demo><two words><>"
    assert tree.calls() == ["venv", "cmake --preset", "cmake --build"]
    assert re.search(r"\[lattice\] 1/3 .*\.venv.*2/3 configuring.*3/3 building", first.stderr, re.DOTALL)
    assert (tree.path / ".venv" / "site" / "lattice-tree.pth").read_text().strip() == str(tree.path / "python")

    second = tree.run("demo")
    assert second.stdout == "<demo>" and second.stderr == "" and tree.calls() == []


def test_doctor_knows_the_state_of_the_build(tree):
    def facts():
        return json.loads(tree.run("doctor", "--json").stdout)

    tree.stand_in("nproc", "")  # a machine that says nothing
    assert facts()["cores"] == "unknown"
    (tree.path / "stand-ins" / "nproc").unlink()
    assert facts()["build"].startswith("not up to date")
    tree.run("setup")
    assert facts()["build"] == "up to date"
    (tree.path / "src" / "new.cc").touch()
    assert facts()["build"].startswith("not up to date")


def test_the_cpu_build_of_torch_is_asked_for_where_an_index_offers_it(tree):
    result = tree.run("setup", offered="2.13.0+cu130, 2.13.0+cpu, 2.13.0")
    assert "torch==2.13.0+cpu" in (tree.path / "calls.pip").read_text().split()
    assert "CPU build, 0.2 GB to download" in result.stderr and "CUDA" not in result.stderr


@pytest.mark.parametrize("offered", ["2.13.0", "2.13.0+cu130, 2.13.0", "2.12.0+cpu, 2.13.0"])
def test_without_a_cpu_build_the_size_is_said_before_the_download(tree, offered):
    tree.stand_in("uname", "echo x86_64")
    result = tree.run("setup", offered=offered)
    assert "torch==2.13.0" in (tree.path / "calls.pip").read_text().split()
    assert re.search(r"CUDA build, 2.7 GB to download.*torch==2.13.0\+cpu.*configuring", result.stderr, re.DOTALL)


def test_any_python_that_torch_has_wheels_for_will_do(tree):
    """A stand-in that is asked for its version is this Python with another number."""
    check = '[[ $1 == -c ]] && exec "$REAL" -c "import sys; sys.version_info = ({version}, 0); $2"\n'
    versions = {"3, 9": 1, "3, 10": 0, "3, 12": 0, "3, 14": 0, "3, 15": 1}
    for version, status in versions.items():
        tree.stand_in("own-python", check.format(version=version) + STAND_INS["python3.11"])
        result = tree.run("setup", LATTICE_PYTHON=str(tree.path / "stand-ins" / "own-python"), REAL=sys.executable)
        assert result.returncode == status, f"{version}: {result.stderr}"
        if status:
            assert "no Python 3.10 to 3.14" in result.stderr and "own-python" in result.stderr
        else:
            (tree.path / ".venv" / ".lattice-stamp").unlink()


def test_a_newer_source_rebuilds_and_changed_requirements_reinstall(tree):
    tree.run("setup")
    (tree.path / "src" / "new.cc").touch()
    tree.run("setup")
    assert tree.calls() == ["cmake --build"]
    with open(tree.path / "requirements.txt", "a") as file:
        file.write("# changed\n")
    tree.run("setup")
    assert tree.calls() == ["venv", "cmake --preset", "cmake --build"]


def test_a_linked_venv_is_left_alone(tree, tmp_path):
    (tree.path / ".venv").symlink_to(tmp_path)
    result = tree.run("demo")
    assert result.returncode == 1 and tree.calls() == []
    assert ".venv is a link" in result.stderr and str(tmp_path) in result.stderr and "Remove the link" in result.stderr


def test_a_venv_of_another_python_is_emptied_first(tree):
    tree.run("setup")
    for venv, clear in [("3.12", ""), ("3.11", " --clear")]:
        (tree.path / ".venv" / ".lattice-stamp").unlink()
        tree.run("setup", VERSION="3.12", VENV_VERSION=venv)
        assert (tree.path / "calls.venv").read_text() == f"-m venv{clear} {tree.path / '.venv'}\n"


def test_an_interrupted_set_up_is_run_again(tree):
    tree.run("setup")
    (tree.path / ".venv" / ".lattice-stamp").unlink()
    tree.run("setup")
    assert tree.calls() == ["venv", "cmake --preset", "cmake --build"]


def test_a_failing_build_shows_the_log_and_is_tried_again(tree):
    tree.fail.touch()
    result = tree.run("demo")
    assert result.returncode == 1 and result.stdout == ""
    assert "the compiler's last words" in result.stderr and "build/setup.log" in result.stderr
    tree.fail.unlink()
    assert tree.run("demo").returncode == 7
    assert tree.calls() == ["cmake --preset", "cmake --build"]


def test_without_root_missing_packages_give_the_apt_line(tree):
    if os.geteuid() == 0:
        shutil.chown(tree.path, "nobody")
        prefix = ["setpriv", "--reuid=nobody", "--clear-groups"]
    else:
        prefix = []
    result = tree.run("demo", present=tree.packages[2:], prefix=prefix)
    assert result.returncode == 1 and result.stdout == ""
    line = "sudo apt-get install -y --no-install-recommends " + " ".join(tree.packages[:2])
    assert line in [text.strip() for text in result.stderr.splitlines()]
    assert tree.calls() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_root_installs_only_the_missing_packages(tree):
    result = tree.run("demo", present=tree.packages[1:])
    assert f"1/4 installing 1 Debian package(s): {tree.packages[0]}\n" in result.stderr
    assert tree.calls() == ["apt-get -y -o DPkg::Lock::Timeout=300 update"]
    assert result.returncode == 1
