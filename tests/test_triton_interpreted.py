"""The Triton kernels in Triton's interpreter: against the CPU operators here, and in place of them in the project's own
tests. The interpreter is chosen when Triton is imported, so this file runs itself again in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed: pip install -r requirements-gpu.txt")

HERE = Path(__file__).resolve().parent
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
inside = pytest.mark.skipif(not INTERPRETED, reason="runs in the process that test_in_the_interpreter starts")
outside = pytest.mark.skipif(INTERPRETED, reason="starts the interpreter")

if INTERPRETED:
    import triton_interpreter

    triton_interpreter.prepare()

import lattice  # noqa: E402, F401
import rule_inputs  # noqa: E402
import scan_inputs  # noqa: E402
from lattice.triton import dispatch  # noqa: E402

# The project's own tests that reach what is special to the GPU path, with its kernels in place of the CPU's.
IN_PLACE = [
    "test_scan_golden.py::test_golden",
    "test_scan_torch.py::test_opcheck_of_the_parts",
    "test_scan_torch.py::test_compile_sees_one_graph[dec-False]",
    "test_scan_errors.py::test_wrong_bounds",
]
SELECTED = "not float32"  # test_triton_ptx.py has it


def start(*arguments):
    return subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments], cwd=HERE,
                            env=dict(os.environ, TRITON_INTERPRET="1"), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


@outside
def test_in_the_interpreter():
    """Side by side, for they take a minute: the tests below, and the project's own."""
    processes = [start(Path(__file__).name), start("-p", "triton_in_place", "-k", SELECTED, *IN_PLACE)]
    outputs = [process.communicate()[0] for process in processes]
    for process, output in zip(processes, outputs):
        assert process.returncode == 0 and " passed" in output, output[-4000:]


def compare(rule, normalize, x, cu_seqlens=None, tolerance=1e-9):
    """Outputs and gradients of the GPU path against the CPU's operators."""
    gates = [x.get(gate["name"]) for memory in lattice.memories() if memory["name"] == rule for gate in memory["gates"]]
    inputs = (rule, normalize, x["q"], x["k"], x["v"], gates, x["state"], cu_seqlens)
    rng = torch.Generator().manual_seed(3)
    dy, dstate = (torch.randn(x[name].shape, generator=rng, dtype=x[name].dtype) for name in ("v", "state"))
    got, wanted = [], []
    for forward, backward, activations, out in ((dispatch.forward, dispatch.backward, False, got),
                                                (torch.ops.lattice._forward, torch.ops.lattice._backward, True, wanted)):
        y, state, saved = forward(*inputs, True, activations)
        *grads, dgates = backward(*inputs, saved, dy, dstate)
        out += [y, state, *grads, *dgates]
    results = [x for x in got if x.numel()]
    assert len({x.untyped_storage().data_ptr() for x in results}) == len(results), "results alias each other"
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert a.shape == b.shape
        if b.numel():
            error = float((a - b).abs().max() / b.abs().max().clamp_min(1e-3))
            assert error <= tolerance, f"result {i} is off by {error:.1e}"


@inside
@pytest.mark.parametrize("rule,normalize,M,D,lam", [
    ("lattice_dec", "token", 5, 17, False),
    ("lattice_dec", "none", 17, 5, True),
    ("lattice_enc", "token", 16, 16, True),
    ("lattice_enc", "none", 3, 4, False),
    ("lattice_sim", "token", 4, 9, False),
    ("lattice_sim", "none", 33, 1, False),
])
def test_scan_across_checkpoints(rule, normalize, M, D, lam):
    compare(rule, normalize, scan_inputs.make(B=1, T=34, H=1, M=M, D=D, lam=lam))


@inside
@pytest.mark.parametrize("rule", ["linear_attention", "mamba2", "gla", "deltanet", "gated_deltanet", "rwkv7", "ttt"])
def test_rules_across_checkpoints(rule):
    x = rule_inputs.make(rule, B=1, T=34, H=1, M=5, D=3)
    compare(rule, "token", dict(x, state=rule_inputs.make_state(rule, B=1, H=1, M=5, D=3)[0]))


@inside
@pytest.mark.parametrize("bounds", [None, [0, 2, 2, 36, 39]])
def test_mlstm_across_checkpoints(bounds):
    x = rule_inputs.make("mlstm", B=1, T=39, H=1, M=5, D=3)
    S, n, c = rule_inputs.make_state("mlstm", B=1 if bounds is None else 4, H=1, M=5, D=3)
    state = torch.cat([S.flatten(2), n, c.unsqueeze(-1)], -1)
    compare("mlstm", "token", dict(x, state=state), None if bounds is None else torch.tensor(bounds))


@inside
def test_bfloat16_is_read_as_it_is():
    """Results are those of the widened inputs, and gradients have the types of the inputs. The interpreter cuts off what
    it should round; test_triton_ptx.py has the rounding."""
    x = scan_inputs.make(B=1, T=34, H=1, M=4, D=6, dtype=torch.float32)
    half = {name: value if name == "state" else value.bfloat16() for name, value in x.items()}
    rng = torch.Generator().manual_seed(3)
    dy, dstate = torch.randn(x["v"].shape, generator=rng).bfloat16(), torch.randn(x["state"].shape, generator=rng)

    def run(x, dy):
        inputs = ("lattice_dec", "token", x["q"], x["k"], x["v"], [x["gamma"], x["mu"], None], x["state"], None)
        y, state, saved = dispatch.forward(*inputs, True, False)
        *grads, dgates = dispatch.backward(*inputs, saved, dy, dstate)
        return [y, state, *grads, *dgates[:2]]

    wide = run({name: value.float() for name, value in half.items()}, dy.float())
    types = ["v", "state", "q", "k", "v", "state", "gamma", "mu"]
    for got, want, name in zip(run(half, dy), wide, types, strict=True):
        assert got.dtype == half[name].dtype
        assert float((got.float() - want).abs().max()) <= 2**-6 * float(want.abs().max()), name


@inside
@pytest.mark.parametrize("words,inputs", [("k has 4 slots but state has 3", dict(state=torch.ones(1, 1, 3, 6))),
                                          ("must end at T = 6", dict(cu=torch.tensor([0, 7])))])
def test_what_would_lead_out_of_memory_is_refused(words, inputs):
    x = scan_inputs.make(B=1, T=6, H=1, M=4, D=6)
    with pytest.raises(ValueError, match=words):
        dispatch.forward("lattice_dec", "token", x["q"], x["k"], x["v"], [x["gamma"], None, None],
                         inputs.get("state", x["state"]), inputs.get("cu"), False, False)


@inside
def test_packed_sequences_with_an_empty_one():
    x = scan_inputs.make(B=1, T=39, H=2, M=4, D=6, sequences=4)
    compare("lattice_dec", "token", x, torch.tensor([0, 2, 2, 36, 39]))


@inside
@pytest.mark.parametrize("normalize", ["token", "none"])
def test_a_split_is_the_whole_bit_for_bit(normalize):
    x = scan_inputs.make(B=1, T=6, H=1, M=4, D=6, dtype=torch.float32)

    def run(part, state):
        gates = [part["gamma"], part["mu"], None]
        return dispatch.forward("lattice_dec", normalize, part["q"], part["k"], part["v"], gates, state, None, False, False)

    y, state, _ = run(x, x["state"])
    y0, mid, _ = run(scan_inputs.slice_time(x, 0, 2, None), x["state"])
    y1, end, _ = run(scan_inputs.slice_time(x, 2, 6, None), mid)
    assert torch.equal(torch.cat([y0, y1], 1), y) and torch.equal(end, state)


@inside
@pytest.mark.parametrize("rule,M,words", [("lattice_dec", 4, "has no GPU kernel"), ("lattice_dec", 129, "use more heads")])
def test_what_the_kernels_cannot_do_is_said(rule, M, words, monkeypatch):
    """Memories of one's own have no GPU kernel: one is taken away to stand for them."""
    if M < 100:
        monkeypatch.delitem(dispatch._kernels().RULES, rule)
    x = scan_inputs.make(B=1, T=2, H=1, M=M, D=4)
    with pytest.raises(NotImplementedError, match=words):
        dispatch.forward(rule, "token", x["q"], x["k"], x["v"], [x["gamma"], None, None], x["state"], None, False, False)


@inside
def test_without_triton_there_is_a_way_out(monkeypatch):
    def absent():
        raise ImportError("No module named 'triton'")

    monkeypatch.setattr(dispatch, "_kernels", absent)
    x = scan_inputs.make(B=1, T=2, H=1)
    with pytest.raises(NotImplementedError, match=r"\[scan\] tensors on .* need Triton.*install triton==.*move the tensors to the CPU"):
        dispatch.forward("lattice_dec", "token", x["q"], x["k"], x["v"], [x["gamma"], None, None], x["state"], None, False, False)
