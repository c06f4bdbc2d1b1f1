"""The recipes of docs/scaling.md for Slurm and Open MPI, taken from the page and run with a tiny model."""

import os
import re
import shlex
import shutil
import subprocess
import textwrap

import pytest
from cli_program import ROOT, metrics, write_text
from rank_program import command, environment, free_port

PAGE = (ROOT / "docs" / "scaling.md").read_text()
TRAINING = r"\./lattice train --config 110m .*--resume auto"

# What Slurm's programs do, on one host: the tasks of a step get their numbers and run at once.
SRUN = """#!/bin/bash
tasks=()
for ((i = 0; i < SLURM_NTASKS; ++i)); do SLURM_PROCID=$i SLURM_LOCALID=$i "$@" & tasks+=($!); done
for task in "${tasks[@]}"; do wait "$task" || exit; done
"""
SCONTROL = """#!/bin/bash
[[ "$1 $2" == "show hostnames" ]] && printf '%s\\n' 127.0.0.1 other
"""


def recipe(after):
    """The indented block that follows a line of the page."""
    block = re.search(re.escape(after) + r"\n\n((?:    .*\n)+)", PAGE)
    assert block, f"docs/scaling.md has no recipe after {after!r}"
    return textwrap.dedent(block[1])


def tiny(text, tmp_path, port):
    """The recipe with a training that is over in a moment, and a free port."""
    words = shlex.join(command(write_text(tmp_path / "text.txt"), tmp_path / "run", "train.steps=4", args=("--resume", "auto")))
    filled, count = re.subn(TRAINING, lambda _: words, text)
    assert count == 1 and "29400" in filled
    return filled.replace("29400", str(port))


def check(done, run):
    assert done.returncode == 0, done.stderr
    assert "ranks       2, each with 2 sequences" in done.stdout, done.stdout
    assert [line["step"] for line in metrics(run) if "loss" in line] == [1, 2, 3, 4], "one rank writes"


def test_the_batch_file_of_slurm(tmp_path):
    file = tmp_path / "train.sbatch"
    file.write_text(tiny(recipe("With Slurm, as a batch file for `sbatch`:"), tmp_path, free_port()))
    assert subprocess.run(["bash", "-n", file], capture_output=True).stderr == b""
    assert all(line.startswith("--") for line in re.findall(r"^#SBATCH (.*)$", file.read_text(), re.M)[0].split())
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    slurm = dict(SLURM_JOB_NODELIST="node[1-2]", SLURM_NTASKS=2, SLURM_NTASKS_PER_NODE=2, SLURM_CPUS_PER_TASK=1)
    done = subprocess.run(["bash", file], capture_output=True, text=True, timeout=300,
                          env=environment(PATH=f"{tmp_path}:{os.environ['PATH']}", **slurm))
    check(done, tmp_path / "run")


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed (Debian: openmpi-bin)")
def test_the_command_of_open_mpi(tmp_path):
    words = tiny(recipe("With Open MPI:"), tmp_path, free_port()).replace("-np 8", "-np 2").replace("node1", "127.0.0.1")
    allowed = dict(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, OMPI_MCA_rmaps_base_oversubscribe=1)
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=300, env=environment(**allowed))
    check(done, tmp_path / "run")
