"""lattice.scan as a torch operator: opcheck, fake tensors, torch.compile, export, bfloat16, memory."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lattice
from scan_inputs import NORMALIZE, OBJECTIVES, gradients, make

HERE = Path(__file__).resolve().parent


def test_meta_tensors_give_shapes_without_data():
    inputs = {name: x.to("meta") for name, x in make(B=2, T=9, H=3, M=4, D=6, dtype=torch.float32).items()}
    y, state = lattice.scan(**inputs)
    assert y.is_meta and y.shape == (2, 9, 3, 6) and y.dtype == torch.float32
    assert state.is_meta and state.shape == (2, 3, 4, 6) and state.dtype == torch.float32


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("normalize", NORMALIZE)
def test_opcheck_scan(objective, normalize, packed):
    """Schema, autograd registration, fake tensors and dynamic shapes, by torch's own checker."""
    x = make(B=1 if packed else 2, T=40, lam=packed, sequences=3 if packed else None)
    x = {name: t.requires_grad_() for name, t in x.items()}
    bounds = torch.tensor([0, 4, 4, 40]) if packed else None
    torch.library.opcheck(torch.ops.lattice.scan.default, (x["q"], x["k"], x["v"], x["gamma"], x["mu"], x["state"],
                                                           x.get("lam"), bounds, objective, normalize))


def test_opcheck_of_the_parts():
    """The operators that torch.compile sees: the differentiable one, its forward and its backward."""
    x = make(T=40)
    inputs = ("lattice_dec", "token", x["q"], x["k"], x["v"], [x["gamma"], x["mu"]], x["state"], None)
    ops = torch.ops.lattice
    torch.library.opcheck(ops._recurrence.default, inputs)
    torch.library.opcheck(ops._forward.default, (*inputs, True, True))
    y, state, saved = ops._forward(*inputs, True, True)
    for dstate in (None, torch.ones_like(state)):
        torch.library.opcheck(ops._backward.default, (*inputs, saved, torch.ones_like(y), dstate))


@pytest.mark.parametrize("lam", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_compile_sees_one_graph(objective, lam):
    inputs = make(T=40, lam=lam)
    compiled = torch.compile(lambda **x: lattice.scan(**x, objective=objective), backend="aot_eager", fullgraph=True)
    eager = gradients(lattice.scan, inputs, objective=objective)
    traced = gradients(compiled, inputs)
    assert torch.equal(eager[0], traced[0]) and torch.equal(eager[1], traced[1])
    for name in inputs:
        assert torch.equal(eager[2][name], traced[2][name]), f"gradient of {name}"


def test_compile_with_cu_seqlens():
    inputs = make(B=1, T=9, sequences=3)
    bounds = torch.tensor([0, 4, 4, 9])
    compiled = torch.compile(lattice.scan, backend="aot_eager", fullgraph=True)
    for a, b in zip(compiled(**inputs, cu_seqlens=bounds), lattice.scan(**inputs, cu_seqlens=bounds)):
        assert torch.equal(a, b)


def test_compile_with_dynamic_shapes():
    """One graph for every length and batch."""
    compiled = torch.compile(lattice.scan, backend="aot_eager", fullgraph=True, dynamic=True)
    for B, T in ((2, 9), (3, 40), (2, 65)):
        inputs = make(B=B, T=T)
        for a, b in zip(compiled(**inputs), lattice.scan(**inputs)):
            assert torch.equal(a, b)


def test_export():
    class Memory(torch.nn.Module):
        def forward(self, q, k, v, gamma, mu, state):
            return lattice.scan(q, k, v, gamma, mu, state)

    inputs = make()
    arguments = tuple(inputs[name] for name in ("q", "k", "v", "gamma", "mu", "state"))
    program = torch.export.export(Memory(), arguments)
    for a, b in zip(program.module()(*arguments), lattice.scan(**inputs)):
        assert torch.equal(a, b)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bfloat16_inputs_with_a_float32_state(objective):
    """The recurrence itself runs in float32: the result is that of the rounded inputs, rounded once at the end."""
    inputs = make(B=2, T=50, H=2, M=16, D=16, dtype=torch.float32)
    half = {name: x if name == "state" else x.bfloat16() for name, x in inputs.items()}
    y, state, grads = gradients(lattice.scan, half, objective=objective)
    assert y.dtype == torch.bfloat16 and state.dtype == torch.float32
    y_full, state_full, _ = gradients(lattice.scan, {name: x.float() for name, x in half.items()}, objective=objective)
    torch.testing.assert_close(y.float(), y_full, rtol=2**-8, atol=1e-6)
    torch.testing.assert_close(state, state_full, rtol=1e-5, atol=1e-6)
    for name, g in grads.items():
        assert g.dtype == half[name].dtype and torch.isfinite(g).all()


MEMORY = """
import resource, sys
sys.path[:0] = [{tests!r}, {python!r}]
import torch, lattice
from scan_inputs import make, gradients

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

T, H, M, D = 65536, 1, 64, 64
torch.set_num_threads(1)
gradients(lattice.scan, make(B=1, T=200, H=H, M=M, D=D, dtype=torch.float32))
x = {{name: t.requires_grad_() for name, t in dict(
    q=torch.rand(1, T, H, M), k=torch.rand(1, T, H, M) / M, v=torch.rand(1, T, H, D), gamma=torch.rand(1, T, H),
    mu=torch.rand(1, T, H), state=torch.rand(1, H, M, D)).items()}}
dy, ds = torch.rand(1, T, H, D), torch.rand(1, H, M, D)
before = peak()
y, state = lattice.scan(**x)
grads = torch.autograd.grad((y, state), tuple(x.values()), (dy, ds))
assert all(torch.isfinite(g).all() for g in grads)
results = sum(t.numel() * 4 for t in (y, state, *grads))
print(peak() - before - results, (T // 32 + 64) * H * M * D * 4)
"""


def test_memory_of_a_long_sequence():
    """T = 65,536: beside inputs and results, forward and backward need at most T/32 + 64 states per head."""
    script = MEMORY.format(tests=str(HERE), python=str(HERE.parent / "python"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    extra, allowed = map(int, done.stdout.split())
    assert extra <= allowed, f"{extra / 2**20:.1f} MiB beside inputs and results, allowed {allowed / 2**20:.1f} MiB"


def test_nothing_is_kept_when_no_gradient_is_wanted():
    inputs = {name: x.requires_grad_() for name, x in make(T=100).items()}
    with torch.no_grad():
        y, state = lattice.scan(**inputs)
    assert y.grad_fn is None and state.grad_fn is None
    with torch.inference_mode():
        y_inference, _ = lattice.scan(**inputs)
    assert torch.equal(y, y_inference)
    y_training, _ = lattice.scan(**inputs)
    assert torch.equal(y, y_training.detach())
