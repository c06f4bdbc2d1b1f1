"""tests/cuda/one_warp.cu: compiled by nvcc, and executed on the machine of tests/ptx."""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import ptx
import sass

SOURCE = Path(__file__).resolve().parent / "cuda" / "one_warp.cu"
NVCC = shutil.which("nvcc")
SIZE = 64
ARGUMENTS = ("q", "k", "v", "gamma", "mu", "state")


@functools.cache
def compiled(target, kind):
    """The bytes that nvcc makes of the source: kind is "ptx" or "cubin"."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "one_warp"
        subprocess.run([NVCC, f"-arch={target}", "-O3", f"--{kind}", "-o", out, SOURCE], check=True, capture_output=True)
        return out.read_bytes()


def padded(x):
    """Slots and columns that are not there are zero, and stay zero."""
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, SIZE - x.shape[-1])])


def run(target, given, text=None):
    """y and the final state of one head: {name: array}. `text` stands in for the kernel's PTX."""
    M, D = given["q"].shape[3], given["v"].shape[3]
    state = np.zeros((1, 1, SIZE, SIZE), np.float32)
    state[:, :, :M, :D] = given["state"]
    T = given["q"].shape[1]
    arrays = dict(given, state=state, **{name: padded(given[name]) for name in ("q", "k", "v")})
    y, out = np.full((1, T, 1, SIZE), np.nan, np.float32), np.full(state.shape, np.nan, np.float32)
    arguments = [(name, np.ascontiguousarray(arrays[name].astype(np.float32)), True) for name in ARGUMENTS]
    ptx.launch(text or compiled(target, "ptx").decode(), "one_warp", 1, [*arguments, ("y", y, False), ("state_out", out, False), T, 1], 0)
    return dict(y=y[..., :D], state_out=out[:, :, :M, :D])


def loop(target):
    """The instructions of a token, and what the kernel needs."""
    cubin = compiled(target, "cubin")
    (only,) = sass.loops(cubin)
    return only, sass.resources(cubin)
