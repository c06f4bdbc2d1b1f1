"""The chunk forms as torch operators: opcheck, fake tensors, torch.compile; and what they refuse."""

import re

import pytest
import torch

import lattice
from chunk_forms import METHODS
from scan_inputs import gradients, make

ERRORS = (RuntimeError, ValueError, TypeError)
ORDER = ("q", "k", "v", "gamma", "mu", "state")
FORMS = [("linear1", 1, None), ("linear2", 1, None), ("linear2", 3, None), ("linear2", 16, 1e-3)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("method,sweeps,tolerance", FORMS)
def test_opcheck_scan(method, sweeps, tolerance, packed):
    x = make(B=1 if packed else 2, T=40, sequences=3 if packed else None)
    x = [x[name].requires_grad_() for name in ORDER]
    bounds = torch.tensor([0, 4, 4, 40]) if packed else None
    torch.library.opcheck(torch.ops.lattice.scan.default,
                          (*x, None, bounds, "dec", "chunk", method, 16, sweeps, tolerance))


@pytest.mark.parametrize("method,sweeps,tolerance", FORMS)
def test_opcheck_of_the_parts(method, sweeps, tolerance):
    x = make(T=150)
    inputs = ("dec", "token", method, 16, sweeps, tolerance, *(x[name] for name in ORDER), None)
    ops = torch.ops.lattice
    torch.library.opcheck(ops._chunk_scan.default, inputs)
    kernels = sweeps == 1
    torch.library.opcheck(ops._chunk_forward.default, (*inputs, kernels, True))
    y, state, kept = ops._chunk_forward(*inputs, kernels, True)
    for dstate in (None, torch.ones_like(state)):
        torch.library.opcheck(ops._chunk_backward.default, (*inputs, kept, torch.ones_like(y), dstate))


def test_meta_tensors_give_shapes_without_data():
    x = {name: t.to("meta") for name, t in make(B=2, T=9, H=3, M=4, D=6, dtype=torch.float32).items()}
    for options in (dict(method="linear1"), dict(method="linear2", sweeps=2), dict(method="linear2", sweeps="auto")):
        y, state = lattice.scan(**x, chunk=4, **options)
        assert y.is_meta and y.shape == (2, 9, 3, 6) and state.is_meta and state.shape == (2, 3, 4, 6)


@pytest.mark.parametrize("options", [dict(method="linear1"), dict(method="linear2"), dict(method="linear2", sweeps=3),
                                     dict(method="linear2", sweeps="auto")], ids=str)
def test_compile_sees_one_graph(options):
    torch._dynamo.reset()
    x, options = make(T=40), dict(options, chunk=16)
    compiled = torch.compile(lambda **inputs: lattice.scan(**inputs, **options), backend="aot_eager", fullgraph=True)
    eager, traced = gradients(lattice.scan, x, **options), gradients(compiled, x)
    assert torch.equal(eager[0], traced[0]) and torch.equal(eager[1], traced[1])
    for name in x:
        assert torch.equal(eager[2][name], traced[2][name]), f"gradient of {name}"


@pytest.mark.parametrize("method", METHODS)
def test_compile_with_dynamic_shapes(method):
    compiled = torch.compile(lattice.scan, backend="aot_eager", fullgraph=True, dynamic=True)
    for B, T in ((2, 9), (3, 40), (2, 65)):
        x = make(B=B, T=T)
        for a, b in zip(compiled(**x, method=method, chunk=16), lattice.scan(**x, method=method, chunk=16)):
            assert torch.equal(a, b)


def refuse(words, inputs, **options):
    with pytest.raises(ERRORS) as caught:
        lattice.scan(**inputs, **options)
    message = str(caught.value)
    assert "[scan]" in message, message
    for word in words:
        assert re.search(rf"(?<!\w){re.escape(str(word))}(?!\w)", message), f"{word!r} is not in: {message}"


@pytest.mark.parametrize("options,words", [
    (dict(method="linear3"), ["method", "linear3", "exact", "linear1", "linear2"]),
    (dict(method="linear2", normalize="row"), ["normalize", "row", "token", "chunk", "none"]),
    (dict(method="linear2", objective="dek"), ["objective", "dek", "dec", "enc", "sim"]),
    (dict(method="linear1", chunk=0), ["chunk", 0, "at least 1"]),
    (dict(method="linear2", chunk=-64), ["chunk", -64, "at least 1"]),
    (dict(method="linear2", sweeps=0), ["sweeps", 0, "at least 1"]),
    (dict(method="linear2", sweeps=-2), ["sweeps", -2, "at least 1"]),
    (dict(method="linear2", sweeps=1.5), ["sweeps", 1.5, "whole number"]),
    (dict(method="linear2", sweeps="many"), ["sweeps", "many", "auto"]),
    (dict(method="linear2", sweeps="auto", tolerance=0.0), ["tolerance", "greater than 0"]),
    (dict(method="linear2", sweeps=2, tolerance=1e-3), ["tolerance", "auto"]),
    (dict(method="linear1", sweeps=2), ["sweeps", "linear1", "linear2"]),
    (dict(method="exact", sweeps=2), ["sweeps", 2, "exact"]),
    (dict(method="exact", sweeps="auto"), ["sweeps", "exact"]),
    (dict(method="exact", chunk=4), ["chunk", 4, "exact"]),
    (dict(method="exact", normalize="chunk"), ["normalize", "chunk", "token", "none", "linear2"]),
    (dict(method="linear2", lam=0.1), ["lam", "linear2", "exact"]),
], ids=str)
def test_options_that_are_refused(options, words):
    refuse(words, make(), **options)


@pytest.mark.parametrize("method", METHODS)
def test_tensors_are_checked_as_in_the_exact_form(method):
    x = make()
    refuse(["k"], dict(x, k=x["k"][..., :3]), method=method)
    refuse(["state", "[B,H,M,D]"], dict(x, state=None), method=method)
    refuse(["state", 5], dict(x, state=torch.zeros(2, 2, 5, 6, dtype=torch.float64)), method=method)
    refuse(["gamma", "[B,T,H]"], dict(x, gamma=x["gamma"][..., 0]), method=method)
    refuse(["v"], dict(x, v=x["v"].float()), method=method)
    refuse(["T"], {name: t if name == "state" else t[:, :0] for name, t in x.items()}, method=method)
    one = make(B=1)
    refuse(["cu_seqlens", 9], one, method=method, cu_seqlens=torch.tensor([0, 8]))


@pytest.mark.parametrize("options", [dict(method="linear1"), dict(method="linear2"), dict(method="linear2", sweeps=2)],
                         ids=str)
def test_second_derivatives_are_refused(options):
    x = {name: t.requires_grad_() for name, t in make().items()}
    y, _ = lattice.scan(**x, **options)
    (dq,) = torch.autograd.grad(y.sum(), x["q"], create_graph=True)
    with pytest.raises(RuntimeError, match=r"\[scan\] has first derivatives only"):
        torch.autograd.grad(dq.sum(), x["v"])
