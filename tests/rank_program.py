"""Starts the ranks of a training by hand, for the test_ranks* modules."""

import os
import socket
import subprocess
import time

import numpy as np
from cli_program import PROGRAM, TINY, settings
from safetensors.numpy import load_file

PATIENCE = 300  # seconds for a program on a machine under load
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(**variables):
    clean = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    return clean | {"OMP_NUM_THREADS": "1"} | {name: str(value) for name, value in variables.items()}


def command(text, out, *assignments, args=()):
    return [str(word) for word in (PROGRAM, "train", "--data", text, "--out", out, "--threads", 1,
                                   *settings(*TINY, *assignments), *args)]


def start(words, rank, size, port, address="127.0.0.1", prefix=(), **variables):
    return subprocess.Popen([*prefix, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(RANK=rank, WORLD_SIZE=size, MASTER_ADDR=address, MASTER_PORT=port, **variables))


def start_all(words, size):
    port = free_port()
    return [start(words, rank, size, port) for rank in range(size)]


def finish(processes):
    """(exit code, standard error) of each; none is left behind."""
    ends = []
    try:
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE)
            ends.append((process.returncode, err))
    finally:
        for process in processes:
            process.kill()
    return ends


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def weights(run, step):
    return load_file(run / "checkpoints" / f"step-{step}" / "model.safetensors")


def distance(one, other):
    """The largest difference of two sets of weights, relative to the largest weight of its tensor."""
    assert one.keys() == other.keys()
    return max(float(np.abs(one[name] - other[name]).max() / np.abs(other[name]).max().clip(1e-30)) for name in one)
