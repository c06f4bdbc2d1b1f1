"""The operators that layers are made of: torch's own checks, gradients against differences, and torch.compile."""

import itertools

import pytest
import torch

import lattice

ops = torch.ops.lattice


def draw(*shape, dtype=torch.float32, grad=True):
    generator = torch.Generator().manual_seed(sum(shape) + 7 * len(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_(grad)


def conv_inputs(channels=6, dtype=torch.float32):
    return draw(channels, 4, dtype=dtype), draw(channels, dtype=dtype)


CU = torch.tensor([0, 3, 3, 40])


def cases():
    x, past, packed_past = draw(2, 40, 6), draw(2, 3, 6, grad=False), draw(3, 3, 6, grad=False)
    packed, row = draw(1, 40, 6), draw(6)
    yield "causal_conv", ops.causal_conv, (x, *conv_inputs())
    yield "causal_conv with past", ops.causal_conv, (x, *conv_inputs(), past)
    yield "causal_conv with a past that has a gradient", ops.causal_conv, (x, *conv_inputs(), draw(2, 3, 6))
    yield "causal_conv packed", ops.causal_conv, (packed, *conv_inputs(), packed_past, CU)
    yield "unit_convs", ops.unit_convs, (x, *conv_inputs(), *conv_inputs(), 3)
    yield "unit_convs packed", ops.unit_convs, (packed, *conv_inputs(), *conv_inputs(), 3, 1e-12, packed_past, CU)
    yield "unit_convs of bfloat16", ops.unit_convs, (draw(2, 40, 6, dtype=torch.bfloat16), *conv_inputs(), *conv_inputs(), 3)
    yield "rms_norm", ops.rms_norm, (x, row, 1e-5)
    yield "add_rms_norm", ops.add_rms_norm, (x, draw(2, 40, 6), row, 1e-5)
    yield "add_rms_norm of bfloat16", ops.add_rms_norm, (x, draw(2, 40, 6, dtype=torch.bfloat16), row, 1e-5, True)
    yield "unit_vectors", ops.unit_vectors, (x,)
    yield "gated_layer_norm", ops.gated_layer_norm, (x, draw(2, 40, 6), row, draw(6), 1e-5)
    yield "gated_layer_norm of bfloat16", ops.gated_layer_norm, (x, draw(2, 40, 6, dtype=torch.bfloat16), row, draw(6), 1e-5)
    yield "gated_layer_norm in float64", ops.gated_layer_norm, (*(draw(2, 5, 6, dtype=torch.float64) for _ in range(2)),
                                                              *(draw(6, dtype=torch.float64) for _ in range(2)), 1e-5)
    yield "silu_times", ops.silu_times, (x, draw(2, 40, 6))
    yield "silu_times of bfloat16", ops.silu_times, (draw(3, 6, dtype=torch.bfloat16), draw(3, 6, dtype=torch.bfloat16))
    yield "projections", ops.projections, (x, [draw(5, 6), draw(4, 6)])
    yield "projections in bfloat16", ops.projections, (x, [draw(5, 6)], True)
    targets = torch.tensor([1, -1, 0, 8, 3])
    yield "linear_cross_entropy", ops.linear_cross_entropy, (draw(5, 6), draw(9, 6), targets)
    yield "linear_cross_entropy in bfloat16", ops.linear_cross_entropy, (draw(5, 6), draw(9, 6), targets, True)
    yield "linear_cross_entropy of a bfloat16 weight", ops.linear_cross_entropy, (draw(5, 6), draw(9, 6, dtype=torch.bfloat16), targets)
    for norm, activation in (("l2", "none"), ("scale", "silu")):
        yield f"queries_and_keys {norm}", ops.queries_and_keys, (x, *conv_inputs(), *conv_inputs(), 3, norm, activation)
    for norm in ("scale", "rms"):
        yield f"normalize_vectors {norm}", ops.normalize_vectors, (x, norm)
    yield "activate", ops.activate, (x, "silu")
    yield "rotate", ops.rotate, (draw(2, 5, 3, 4), torch.arange(10).view(2, 5), torch.tensor([1.0, 0.1], dtype=torch.float64), 7)
    for memory in lattice.memories()[::2]:  # every form of a gate is among them
        widths = [6 if gate["per_slot"] else 2 for gate in memory["gates"] if gate["layers"]]
        if widths:
            decay = draw(2) if any(gate["form"] == "decay" for gate in memory["gates"]) else None
            yield f"gates of {memory['name']}", ops.gates, (memory["name"], [draw(2, 5, w) for w in widths], 2, decay)


CASES = {name: (op, args) for name, op, args in cases()}


@pytest.mark.parametrize("name", CASES)
def test_torchs_own_checks_pass(name):
    op, args = CASES[name]
    torch.library.opcheck(op.default, args)


def leaves_of(args):
    flat = itertools.chain.from_iterable(x if isinstance(x, list) else [x] for x in args)
    return [x for x in flat if isinstance(x, torch.Tensor) and x.requires_grad]


def outputs_and_gradients(run, args):
    out = run(*args)
    out = [out] if isinstance(out, torch.Tensor) else list(out)
    weights = [torch.linspace(-1, 1, y.numel()).view(y.shape).to(y.dtype) for y in out]
    return out, torch.autograd.grad(sum((y * w).sum().float() for y, w in zip(out, weights)), leaves_of(args), allow_unused=True)


def layer(x, delta, past, row, filter, bias, head, targets):
    s, u = ops.add_rms_norm(x, ops.causal_conv(ops.rms_norm(x, row, 1e-5), filter, bias, past), row, 1e-5)
    q, k = ops.queries_and_keys(u, filter, bias, filter * 2, bias, 3)
    y = ops.gated_layer_norm((q * k).flatten(2), delta, row, bias, 1e-5)
    return ops.linear_cross_entropy((s + ops.silu_times(y, u)).flatten(0, 1), head, targets)


def test_compiled_without_a_break_they_give_the_same():
    args = (draw(2, 9, 6), draw(2, 9, 6), draw(2, 3, 6), draw(6), *conv_inputs(), draw(9, 6), torch.arange(18) % 9 - 1)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    for got, want in zip(outputs_and_gradients(compiled, args), outputs_and_gradients(layer, args)):
        torch.testing.assert_close(got, want)


F64 = {
    "causal_conv": lambda x, w, b, past: ops.causal_conv(x, w, b, past),
    "causal_conv packed": lambda x, w, b, past: ops.causal_conv(x.reshape(1, 10, 6), w, b, None, torch.tensor([0, 4, 10])),
    "rms_norm": lambda x, w, b, past: ops.rms_norm(x, b, 1e-3),
    "add_rms_norm": lambda x, w, b, past: ops.add_rms_norm(x, x.sin(), b, 1e-3),
    "unit_vectors": lambda x, w, b, past: ops.unit_vectors(x),
    "gated_layer_norm": lambda x, w, b, past: ops.gated_layer_norm(x, x.cos(), b, b, 1e-3),
    "silu_times": lambda x, w, b, past: ops.silu_times(x, x.sin()),
    "linear_cross_entropy": lambda x, w, b, past: ops.linear_cross_entropy(w.t(), x[0], torch.tensor([1, 4, -1, 0])),
    "projections": lambda x, w, b, past: ops.projections(x, [past[0], past[1]]),
    "rotate": lambda x, w, b, past: ops.rotate(x.unsqueeze(2), torch.arange(5), torch.tensor([1.0, 0.2, 0.05], dtype=torch.float64)),
}


@pytest.mark.parametrize("name", F64)
def test_gradients_are_those_of_differences(name):
    x, (w, b), past = draw(2, 5, 6, dtype=torch.float64), conv_inputs(dtype=torch.float64), draw(2, 3, 6, dtype=torch.float64)
    if name == "linear_cross_entropy":
        w = draw(5 + 1, 4, dtype=torch.float64)
    torch.autograd.gradcheck(F64[name], (x, w, b, past))


@pytest.mark.parametrize("name", ["causal_conv", "unit_convs", "rms_norm", "add_rms_norm", "gated_layer_norm", "silu_times",
                                  "linear_cross_entropy"])
def test_any_set_of_inputs_may_have_gradients(name):
    op, args = CASES[name]
    _, wanted = outputs_and_gradients(op, args)
    places = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and x.requires_grad]
    for keep in itertools.chain.from_iterable(itertools.combinations(range(len(places)), n) for n in (1, 2)):
        some = [x.detach().requires_grad_(i in [places[j] for j in keep]) if isinstance(x, torch.Tensor) and i in places else x
                for i, x in enumerate(args)]
        _, got = outputs_and_gradients(op, some)
        for j, gradient in zip(keep, got):
            assert torch.equal(gradient, wanted[j])


def test_a_loss_may_be_gone_back_through_twice():
    op, args = CASES["linear_cross_entropy"]
    loss = op(*args)
    first = torch.autograd.grad(loss, args[0], torch.tensor(2.0), retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, args[0], torch.tensor(2.0))[0])
    assert torch.equal(first, 2 * torch.autograd.grad(op(*args), args[0])[0])


def test_wrong_arguments_are_named():
    x, (w, b) = draw(2, 5, 6), conv_inputs()
    for message, call in {
        r"\[causal_conv\] needs x \[B,T,C\]": lambda: ops.causal_conv(x, w[:3], b),
        r"\[causal_conv\] past must be \[B,W-1,C\] = \[2,3,6\]": lambda: ops.causal_conv(x, w, b, x),
        r"\[causal_conv\] with cu_seqlens the batch must be 1": lambda: ops.causal_conv(x, w, b, None, CU),
        r"\[causal_conv\] has no gradient for the past of packed": lambda: ops.causal_conv(x[:1], w, b, draw(1, 3, 6), torch.tensor([0, 5])),
        r"\[rms_norm\] x is BFloat16": lambda: ops.rms_norm(x.bfloat16(), b, 1e-6),
        r"\[silu_times\] a and b must have one shape": lambda: ops.silu_times(x, x[:1]),
        r"\[linear_cross_entropy\] no target counts": lambda: ops.linear_cross_entropy(x[0], w.t()[:, :6] @ torch.eye(6), torch.full((5,), -1)),
        r"\[linear_cross_entropy\] target 9 is not below": lambda: ops.linear_cross_entropy(x[0], draw(9, 6), torch.full((5,), 9)),
        r"a normalisation of vectors is \"l3\"; the choices are: none, l2, scale, rms": lambda: ops.normalize_vectors(x, "l3"),
    }.items():
        with pytest.raises((ValueError, TypeError), match=message):
            call()
