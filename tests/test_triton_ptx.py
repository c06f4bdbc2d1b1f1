"""The compiled Triton kernels without a GPU: their PTX, executed on a model of the machine (tests/ptx), gives the golden
vectors and breaks no rule; spoiled PTX is noticed."""

import re

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed: pip install -r requirements-gpu.txt")

import golden_files  # noqa: E402
import lattice  # noqa: E402
import ptx  # noqa: E402
import rule_inputs  # noqa: E402
import triton_on_ptx as on_ptx  # noqa: E402
from lattice.triton import launch  # noqa: E402
from scan_inputs import make  # noqa: E402

OF_GOLDEN = dict(q="Q", k="K", v="V", gamma="gamma", mu="mu", lam="lam", state="S0")

# Several warps and several tiles of 8 columns, so that sums cross them, though the states are small; every target sees
# every objective.
CASES = [
    ("exact_dec_token", "sm_80", 8, 2, "float32"),
    ("exact_enc_token_nonunit", "sm_80", 16, 1, "float32"),
    ("exact_sim_none", "sm_80", 8, 4, "float32"),
    ("baseline_gated_deltanet", "sm_80", 8, 2, "float32"),
    ("exact_dec_token", "sm_90", 16, 1, "float64"),
    ("exact_dec_token_prox", "sm_90", 8, 4, "float32"),
    ("exact_enc_none", "sm_90", 8, 2, "float32"),
    ("exact_sim_token_mu1_nonunit", "sm_90", 8, 2, "float32"),
    ("baseline_gla", "sm_90", 8, 2, "float32"),
    ("exact_dec_none_mu1", "sm_100", 8, 2, "float32"),
    ("exact_enc_token_small", "sm_100", 8, 4, "float32"),
    ("exact_sim_token_gamma_one", "sm_100", 16, 1, "float32"),
    ("baseline_ttt", "sm_100", 8, 2, "float32"),
]


def one_head(golden):
    """The vectors of one head of one sequence: heads are independent of each other."""
    state = ("S0", "dS0", "S_final", "dS_final")
    tensors = {key: x[:1, :1] if key in state else x[:1, :, :1] for key, x in golden.tensors.items()}
    return golden_files.Golden(golden.name, golden.meta, tensors)


def rule_of(golden):
    if golden.name.startswith("exact_"):
        return "lattice_" + golden.meta["objective"], golden.meta["normalize"]
    return golden.name.removeprefix("baseline_"), "token"


@pytest.mark.parametrize("name,target,columns,warps,dtype", CASES)
def test_golden_vectors(name, target, columns, warps, dtype):
    golden = one_head(golden_files.load(name))
    rule, normalize = rule_of(golden)
    array = lambda key: np.ascontiguousarray(golden[key].astype(dtype))  # noqa: E731
    given = {name: array(key) for name, key in OF_GOLDEN.items() if golden.get(key) is not None}
    got = on_ptx.both(target, rule, given, array("dY"), array("dS_final"), normalize, launch.Layout(columns, warps))
    golden.judge("Y", got["y"], getattr(torch, dtype))
    golden.judge("S_final", got["state_out"], getattr(torch, dtype))
    for name, key in OF_GOLDEN.items():
        if "d" + key in golden.tensors:
            golden.judge("d" + key, got["d" + name], getattr(torch, dtype))


def follows_the_cpu(size, T, bounds=None):
    """A real head, in the layouts that launch.py chooses, against the CPU's operator in float64."""
    x = make(B=1, T=T, H=1, M=size, D=size, dtype=torch.float32, sequences=None if bounds is None else len(bounds) - 1)
    given = {name: value.numpy() for name, value in x.items()}
    if bounds is not None:
        given["cu"] = bounds.numpy()
    rng = np.random.default_rng(0)
    dy, dstate = (rng.standard_normal(given[name].shape).astype(np.float32) for name in ("v", "state"))
    got = on_ptx.both("sm_90", "lattice_dec", given, dy, dstate)
    leaves = {name: value.double().requires_grad_() for name, value in x.items()}
    y, state = lattice.scan(**leaves, cu_seqlens=bounds)
    grads = torch.autograd.grad((y, state), list(leaves.values()), [torch.tensor(z).double() for z in (dy, dstate)])
    wanted = dict(y=y, state_out=state, **{"d" + name: g for name, g in zip(leaves, grads)})
    for name, reference in wanted.items():
        reference = reference.detach().numpy()
        error = np.abs(got[name] - reference).max() / np.abs(reference).max()
        assert error < 2e-5, f"{name} is off by {error:.1e}"


def test_a_real_head_of_packed_sequences_across_checkpoints():
    """64 x 64 on four warps, with a sequence long enough for a checkpoint."""
    follows_the_cpu(64, 35, torch.tensor([0, 2, 35]))


def test_the_largest_head():
    """128 x 128: 16 warps forward, and 8 with four tiles on the way back."""
    follows_the_cpu(128, 2)


def bits(x):
    """A tensor as the kernels' memory holds it: bfloat16 as its bits."""
    x = x.detach()
    return x.view(torch.uint16).numpy() if x.dtype == torch.bfloat16 else x.numpy()


def widened(array):
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array


def agrees(target, rule, x, run, tolerance):
    """Outputs and gradients of the PTX against `run` in float64. x: {argument of the kernels: tensor}."""
    rng = torch.Generator().manual_seed(0)
    dy, dstate = (torch.randn(x[name].shape, generator=rng).to(x[name].dtype) for name in ("v", "state"))
    got = on_ptx.both(target, rule, {name: bits(value) for name, value in x.items()}, bits(dy), bits(dstate),
                      how=launch.Layout(8, 2))
    leaves = {name: value.double().requires_grad_() for name, value in x.items()}
    out = run(**leaves)
    grads = torch.autograd.grad(out, list(leaves.values()), [dy.double(), dstate.double()])
    for name, wanted in dict(zip(("y", "state_out"), out), **{"d" + name: g for name, g in zip(leaves, grads)}).items():
        wanted = wanted.detach().numpy()
        error = np.abs(widened(got[name]) - wanted).max() / np.abs(wanted).max()
        assert error < tolerance, f"{name} is off by {error:.1e}"


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_bfloat16_is_read_and_written_as_it_is(target):
    """Rounded once, where a result is stored."""
    x = make(B=1, T=5, H=1, M=16, D=16, dtype=torch.float32)
    x = {name: value if name in ("state", "gamma") else value.bfloat16() for name, value in x.items()}
    x["gamma"] = x["gamma"].bfloat16()
    agrees(target, "lattice_dec", x, lattice.scan, 2**-8)


def test_mlstm_with_what_stands_beside_its_matrix():
    x = rule_inputs.make("mlstm", B=1, T=5, H=1, M=5, D=11, dtype=torch.float32)
    S, n, m = rule_inputs.make_state("mlstm", B=1, H=1, M=5, D=11, dtype=torch.float32)
    x["state"] = torch.cat([S.flatten(2), n, m.unsqueeze(-1)], -1)

    def run(gamma, mu, state, **x):
        return torch.ops.lattice.recur_with("mlstm", x["q"], x["k"], x["v"], [gamma, mu], state)

    agrees("sm_90", "mlstm", dict(x, gamma=x.pop("igate"), mu=x.pop("fgate")), run, 1e-4)


def differs(a, b):
    return any(not np.allclose(a[name], b[name], rtol=1e-4, atol=1e-5) for name in a if name not in on_ptx.SCRATCH)


def spoiled(kind, text):
    """(text with one spoiled instruction) for a sample of the instructions of that kind."""
    pattern, change = {
        "barrier": (r"bar\.sync\s+0;", lambda old: ""),
        "shuffle": (r"shfl\.sync\.bfly\.b32\s+[^;]*;", lambda old: re.sub(r", (\d+), 31", _other_lane, old)),
        "wait": (r"cp\.async\.wait_group\s+\w+;", lambda old: ""),
        "address": (r"\[ %rd\d+ \+ 0 \]", lambda old: old.replace("+ 0", "+ 1048576")),
    }[kind]
    found = [m.span() for m in re.finditer(pattern, text)]
    assert found, f"the kernel has no {kind}"
    for begin, end in found[::max(1, len(found) // 6)]:
        yield text[:begin] + change(text[begin:end]) + text[end:]


def _other_lane(match):
    return f", {int(match[1]) ^ 24 or 1}, 31"


@pytest.mark.parametrize("which,kind", [("forward", "barrier"), ("forward", "shuffle"), ("forward", "address"),
                                        ("backward", "barrier"), ("backward", "shuffle"), ("backward", "address"),
                                        ("backward", "wait")])
def test_spoiled_code_is_noticed(which, kind):
    """Barriers and waits for copies removed, shuffles between the wrong lanes, addresses moved by a megabyte: a fault or
    another result."""
    x = make(B=1, T=3, H=1, M=16, D=16, dtype=torch.float32)
    given = {name: value.numpy() for name, value in x.items()}
    if which == "backward":
        rng = np.random.default_rng(0)
        given.update(dy=rng.standard_normal(given["v"].shape).astype(np.float32),
                     dstate_out=rng.standard_normal(given["state"].shape).astype(np.float32),
                     saved=np.zeros(0, np.float32))
    built = on_ptx.compiled(which, "sm_90", "lattice_dec", given, how=launch.Layout(8, 4))
    good, _ = on_ptx.run(which, built, "lattice_dec", given)
    silent = total = 0
    for text in spoiled(kind, built.asm["ptx"]):
        total += 1
        try:
            silent += not differs(on_ptx.run(which, built, "lattice_dec", given, text)[0], good)
        except ptx.Fault:
            pass
    # A barrier may stand where the next one orders the same accesses, and the wait after the loop has nothing to wait for.
    allowed = dict(barrier=total // 3, wait=total - 1).get(kind, 0)
    assert silent <= allowed, f"{silent} of {total} went unnoticed"
