"""The experiment of docs/gpu.md, one warp a head in CUDA C++: its PTX gives the golden vectors, and it issues half of the
instructions. Skipped where there is no nvcc."""

import re

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed: pip install -r requirements-gpu.txt")

import cuda_one_warp  # noqa: E402
import golden_files  # noqa: E402
import lattice  # noqa: E402
import ptx  # noqa: E402
from scan_inputs import make  # noqa: E402
from test_triton_ptx import OF_GOLDEN, one_head  # noqa: E402

pytestmark = pytest.mark.skipif(not cuda_one_warp.NVCC, reason="nvcc is not installed")


@pytest.mark.parametrize("name,target", [("exact_dec_token", "sm_80"), ("exact_dec_token", "sm_90"),
                                         ("exact_dec_token", "sm_100"), ("exact_dec_token_zero_key_value", "sm_90")])
def test_golden_vectors(name, target):
    golden = one_head(golden_files.load(name))
    given = {key: golden[of] for key, of in OF_GOLDEN.items() if golden.get(of) is not None}
    given.setdefault("mu", np.ones_like(given["gamma"]))
    got = cuda_one_warp.run(target, given)
    golden.judge("Y", got["y"], torch.float32)
    golden.judge("S_final", got["state_out"], torch.float32)


def head():
    x = make(B=1, T=3, H=1, M=64, D=64, dtype=torch.float32)
    return x, {name: value.numpy() for name, value in x.items()}


def test_a_whole_head():
    x, given = head()
    got = cuda_one_warp.run("sm_90", given)
    y, state = lattice.scan(**{name: value.double() for name, value in x.items()})
    for name, want in (("y", y), ("state_out", state)):
        assert np.abs(got[name] - want.numpy()).max() <= 2e-5 * float(want.abs().max()), name


def test_spoiled_shuffles_are_noticed():
    _, given = head()
    text = cuda_one_warp.compiled("sm_90", "ptx").decode()
    good = cuda_one_warp.run("sm_90", given)
    found = [m.span() for m in re.finditer(r"shfl\.sync\.bfly\.b32[^;]*;", text)]
    for begin, end in found[::max(1, len(found) // 5)]:
        spoiled = re.sub(r"(, %r\d+), %r\d+,", r"\1, 0,", text[begin:end])  # the lane itself
        assert spoiled != text[begin:end]
        try:
            got = cuda_one_warp.run("sm_90", given, text[:begin] + spoiled + text[end:])
        except ptx.Fault:
            continue
        assert any(not np.allclose(got[name], good[name], rtol=1e-4, atol=1e-5) for name in good)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_it_fits_into_registers_and_issues_half_of_the_instructions(target):
    instructions, needs = cuda_one_warp.loop(target)
    assert needs["spills"] == 0 and needs["stack"] == 0 and needs["registers"] <= 224, needs
    assert len(instructions) <= 1620, f"{len(instructions)} instructions a token, 1,471 on sm_90 when it was written"
