"""Ranks that do not come, do not fit, die or stop: every other says so in one line, in time, and no work is lost."""

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_program import PROGRAM, run, write_text
from rank_program import PATIENCE, command, distance, environment, finish, free_port, start, start_all, wait_until, weights

LONG = ("train.steps=1000000", "train.batch_tokens=192", "train.save_every=20", "train.seq_len=32", "train.micro_batch=1")
WRITE_FAULTS = PROGRAM.parent.parent / "lib" / "liblattice_write_faults.so"  # tools/torture/preload
QUICK = ("--join-timeout", 4, "--fault-timeout", 3)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("faults") / "text.txt")


def ended(processes, *words):
    """All have failed, each with one line that has the words in it. Returns what they said."""
    said = ""
    for code, err in finish(processes):
        said += err
        assert code == 1, err
        lines = [line for line in err.splitlines() if line.startswith("lattice: ")]
        assert len(lines) == 1, err
        assert all(word in lines[0] for word in words), err
    return said


def test_a_wrong_address(text, tmp_path):
    words = command(text, tmp_path / "run", args=QUICK)
    begin = time.monotonic()
    ended([start(words, 0, 2, free_port(), address="192.0.2.1")], "192.0.2.1", "is no address of this host")
    ended([start(words, 1, 2, free_port())], "found no store at MASTER_ADDR=127.0.0.1")
    ended([start(words, 1, 2, free_port(), address="no-such-host.invalid")], "no-such-host.invalid", "resolve")
    assert time.monotonic() - begin < 60
    assert not (tmp_path / "run").exists()


def test_a_port_in_use(text, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended([start(command(text, tmp_path / "run", args=QUICK), 0, 2, port)], f"port {port}", "is in use")


def test_a_rank_that_does_not_come(text, tmp_path):
    words, port = command(text, tmp_path / "run", args=QUICK), free_port()
    ended([start(words, rank, 3, port) for rank in (0, 2)], "WORLD_SIZE=3", "within 4 s: 1;")


def test_sizes_that_differ(text, tmp_path):
    words, port = command(text, tmp_path / "run", args=QUICK), free_port()
    ended([start(words, 0, 2, port), start(words, 1, 3, port)], "rank 1", "WORLD_SIZE=3 but rank 0 has 2")


def test_settings_that_differ(text, tmp_path):
    port = free_port()
    ranks = [start(command(text, tmp_path / "run", f"train.lr={lr}", args=QUICK), rank, 2, port)
             for rank, lr in enumerate(("0.001", "0.002"))]
    ended(ranks, "rank 1 on host", "differs from rank 0", "train.lr is", "0.002", "0.001")


def test_a_text_and_an_instruction_set_that_differ(text, tmp_path):
    other = write_text(tmp_path / "other.txt", lines=390)
    port = free_port()
    ranks = [start(command(data, tmp_path / "run", args=QUICK), rank, 2, port) for rank, data in enumerate((text, other))]
    ended(ranks, "rank 1", "training text (fingerprint)")
    port = free_port()
    words = command(text, tmp_path / "run", args=QUICK)
    ranks = [start(words, 0, 2, port), start(words, 1, 2, port, LATTICE_ISA="scalar")]
    ended(ranks, "rank 1", "instruction set", "scalar")


@pytest.mark.parametrize("rank, how", [(1, signal.SIGKILL), (1, signal.SIGSTOP), (0, signal.SIGKILL), (0, signal.SIGSTOP)])
def test_a_lost_rank_is_named(text, tmp_path, rank, how):
    ranks = start_all(command(text, tmp_path / "run", *LONG, args=QUICK), 3)
    wait_until(lambda: (tmp_path / "run/checkpoints/latest").exists() or ranks[0].poll() is not None, "a checkpoint")
    # A write to a rank that has died must be an error, not the end of the writer.
    ignored = [int(re.search(r"SigIgn:\t(\w+)", Path(f"/proc/{process.pid}/status").read_text())[1], 16) for process in ranks]
    assert all(mask & 1 << signal.SIGPIPE - 1 for mask in ignored)
    ranks[rank].send_signal(how)
    begin = time.monotonic()
    others = [process for process in ranks if process is not ranks[rank]]
    try:
        for process in others:
            process.wait(timeout=60)
        seconds = time.monotonic() - begin
        said = ended(others, f"rank {rank} on host {socket.gethostname()} is lost", "last step was")
    finally:
        ranks[rank].kill()
        ranks[rank].communicate()
    # By the watch's own clock; a machine under load takes its time to end processes.
    assert all(float(silent) < 10 for silent in re.findall(r"for ([\d.]+) s", said)) and seconds < 60, said


def test_a_signal_to_any_rank_saves_and_stops_all(text, tmp_path):
    ranks = start_all(command(text, tmp_path / "run", *LONG, args=QUICK), 3)
    wait_until(lambda: (tmp_path / "run/checkpoints/latest").exists() or ranks[0].poll() is not None, "a checkpoint")
    ranks[2].send_signal(signal.SIGTERM)
    out = ranks[0].communicate(timeout=60)[0]
    assert [code for code, _ in finish(ranks[1:])] == [0, 0] and ranks[0].returncode == 0
    step = int(out.partition("stopped at step ")[2].partition(";")[0])
    assert (tmp_path / f"run/checkpoints/step-{step}/optimizer-00003-of-00003.safetensors").exists()
    # Another number of ranks goes on there.
    more = command(text, tmp_path / "run", *LONG, f"train.steps={step + 3}", args=("--ranks", 2, "--resume", "auto"))
    shown = run(*more[1:], env=environment())
    assert shown.returncode == 0 and f"from step {step}" in shown.stdout, shown.stderr


# What torchrun starts: rank 1 dies at its hundredth call that changes a file of the run (a checkpoint takes 34), until it
# has been started for the third time. Every start of it leaves a line.
DYING = """
if [ "$RANK" = 1 ]; then
  echo start >> "$STARTS"
  if [ "$TORCHELASTIC_RESTART_COUNT" -lt 2 ]; then export LD_PRELOAD="$FAULTS"; fi
fi
exec "$@"
"""


def test_torchrun_starts_again_and_nothing_is_lost(text, tmp_path):
    """One of two workers is killed twice; the weights are those of a run without faults."""
    size = ("train.steps=120", "train.save_every=10", "train.seq_len=32", "train.micro_batch=1", "train.keep_last=3")
    whole = command(text, tmp_path / "whole", *size, args=("--ranks", 2))
    assert run(*whole[1:], env=environment()).returncode == 0
    run_, starts = tmp_path / "run", tmp_path / "starts"
    words = command(text, run_, *size, args=("--resume", "auto", "--fault-timeout", 3))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--max-restarts=4",
                "--master-addr=127.0.0.1", f"--master-port={free_port()}", "--no-python", "sh", "-c", DYING, "sh", *words]
    faults = environment(STARTS=starts, FAULTS=WRITE_FAULTS, LATTICE_FAULT_UNDER=run_, LATTICE_FAULT="kill 100")
    done = subprocess.run(launcher, env=faults, capture_output=True, text=True, timeout=PATIENCE)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert starts.read_text().count("start") == 3, said
    assert "from step" in said, said
    assert distance(weights(run_, 120), weights(tmp_path / "whole", 120)) == 0
