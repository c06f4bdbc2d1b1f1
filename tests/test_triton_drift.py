"""Lengths of slots in the compiled GPU code over many tokens, by the machine of tests/ptx as a C program. The whole 2^20
tokens are in results/gpu/drift.json (triton_drift.py makes it); here are fewer of them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed: pip install -r requirements-gpu.txt")

import triton_drift  # noqa: E402
import triton_on_ptx as on_ptx  # noqa: E402
from scan_inputs import make  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCS = ROOT / "results" / "gpu" / "drift.json", ROOT / "docs" / "gpu.md"


@pytest.mark.parametrize("target,T", [("sm_80", 34), ("sm_100", 3)])
def test_the_c_program_is_the_machine_bit_for_bit(target, T):
    given = {name: value.numpy() for name, value in make(B=1, T=T, H=2, M=16, D=16, dtype=torch.float32).items()}
    built = on_ptx.compiled("forward", target, "lattice_dec", given)
    want, _ = on_ptx.run("forward", built, "lattice_dec", given)
    got = on_ptx.run_translated(on_ptx.translated("forward", built), "forward", "lattice_dec", given)
    assert all(np.array_equal(got[name], want[name]) for name in want)


def worst(program, bias=triton_drift.RANDOM):
    rows = triton_drift.drift(triton_drift.on_the_ptx_machine(program, bias), 16, 1 << 16, hard=True)
    return rows[-1][1]


def test_lengths_do_not_drift():
    """Rounding lets every length wander. Without the correction of a step they all go one way."""
    program = triton_drift.compiled("sm_90", 16)
    assert max(worst(program), worst(program, 1.0), worst(program, -1.0)) < 4e-5
    assert worst(triton_drift.compiled("sm_90", 16, plain=True)) > 1e-4


def test_a_million_tokens_stayed_within_their_bound():
    """What was run for docs/gpu.md."""
    runs = json.loads(RESULTS.read_text())["runs"]
    usual = [run for run in runs if not run["hard"]]
    assert {run["where"] for run in usual} == {"cpu", "sm_80", "sm_90", "sm_100"}
    assert all(run["tokens"] == 1 << 20 and run["largest"] < 1e-4 for run in usual)
    assert triton_drift.table(runs) in DOCS.read_text()
