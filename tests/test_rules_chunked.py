"""lattice.recur with method="chunk": the matrix form of the linear rules against the token-by-token one."""

import pytest
import torch

import lattice
from rule_inputs import RULES, gradients, make, make_state

CHUNKED = ("linear_attention", "mamba2", "gla", "deltanet", "gated_deltanet")
GATED = ("mamba2", "gla", "gated_deltanet")


def assert_same(rule, inputs, state, chunk, tolerance):
    """Outputs and gradients in chunks, in the inputs' type, against the exact ones in float64."""
    want = gradients(lattice.recur, rule, {n: x.double() for n, x in inputs.items()}, [x.double() for x in state or ()])
    got = gradients(lattice.recur, rule, inputs, state, method="chunk", chunk=chunk)
    pairs = dict(zip(("y", "state_out"), ((want[0], got[0]), (want[1][0], got[1][0]))))
    pairs.update({f"d{name}": (want[2][name], got[2][name]) for name in want[2]})
    for name, (expected, actual) in pairs.items():
        assert torch.isfinite(actual).all(), f"{rule} C={chunk}: {name} is not finite"
        error = (actual.double() - expected).abs().max() / expected.abs().max().clamp_min(1.0)
        assert error < tolerance, f"{rule} C={chunk}: {name} is off by {error:.2e}"


def test_the_rules_that_have_a_chunk_form():
    assert sorted(torch.ops.lattice.chunked_rules()) == sorted(CHUNKED)


@pytest.mark.parametrize("rule", CHUNKED)
@pytest.mark.parametrize("chunk", [1, 3, 4, 16, 64])
@pytest.mark.parametrize("T", [1, 16, 65, 150])
def test_equals_the_exact_recurrence(rule, chunk, T):
    assert_same(rule, make(rule, T=T), make_state(rule), chunk, 1e-10)


@pytest.mark.parametrize("rule", CHUNKED)
def test_odd_sizes_and_no_state(rule):
    inputs = make(rule, B=1, T=21, H=3, M=1, D=7)
    assert_same(rule, inputs, None, 8, 1e-10)


@pytest.mark.parametrize("rule", GATED)
@pytest.mark.parametrize("gate", [0.0, 1e-30, 1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_gates(rule, gate, dtype):
    inputs = make(rule, T=150, seed=3)
    inputs["mu"][:] = gate
    inputs = {name: x.to(dtype) for name, x in inputs.items()}
    assert_same(rule, inputs, make_state(rule, dtype=dtype), 64, 1e-10 if dtype == torch.float64 else 2e-4)


@pytest.mark.parametrize("rule", GATED)
def test_gates_that_are_zero_here_and_there(rule):
    inputs = make(rule, T=150, seed=4)
    inputs["mu"][inputs["mu"] < 0.3] = 0.0
    inputs["mu"][inputs["mu"] > 0.8] *= -1.0
    assert (inputs["mu"] == 0).any() and (inputs["mu"] < 0).any()
    assert_same(rule, inputs, make_state(rule), 64, 1e-10)


@pytest.mark.parametrize("rule", CHUNKED)
def test_gradcheck(rule):
    inputs = make(rule, B=1, T=7, H=1, M=3, D=2)
    names, (state,) = list(inputs), make_state(rule, B=1, H=1, M=3, D=2)
    leaves = [x.requires_grad_() for x in (*inputs.values(), state)]

    def recur(*args):
        return lattice.recur(rule, **dict(zip(names, args)), state=args[-1], method="chunk", chunk=4)

    assert torch.autograd.gradcheck(recur, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("rule", CHUNKED)
def test_float32_of_a_layer(rule):
    inputs = {name: x.float() for name, x in make(rule, B=1, T=300, H=2, M=64, D=64).items()}
    state = [0.1 * x.float() for x in make_state(rule, B=1, H=2, M=64, D=64)]
    assert_same(rule, inputs, state, 64, 1e-4)


def test_bfloat16_inputs_beside_a_float32_state():
    inputs = {name: x.bfloat16() for name, x in make("gated_deltanet", T=40).items()}
    y, state = lattice.recur("gated_deltanet", **inputs, method="chunk", chunk=16)
    y_exact, state_exact = lattice.recur("gated_deltanet", **inputs)
    assert y.dtype == torch.bfloat16 and state.dtype == torch.float32
    torch.testing.assert_close(state, state_exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(y, y_exact)


def test_views_that_are_not_contiguous():
    inputs = make("gla", T=40)
    strided = {name: x.transpose(1, 2).contiguous().transpose(1, 2) for name, x in inputs.items()}
    assert not strided["q"].is_contiguous()
    got = lattice.recur("gla", **strided, method="chunk", chunk=16)
    for x, y in zip(got, lattice.recur("gla", **inputs, method="chunk", chunk=16)):
        assert torch.equal(x, y)


def test_shapes_without_data():
    inputs = {name: x.to("meta") for name, x in make("gated_deltanet", T=40).items()}
    y, state = lattice.recur("gated_deltanet", **inputs, method="chunk", chunk=16)
    assert y.shape == (2, 40, 2, 6) and state.shape == (2, 2, 4, 6) and y.device.type == "meta"


@pytest.mark.parametrize("rule", ["gla", "gated_deltanet"])
def test_torch_compile_sees_the_whole_graph(rule):
    inputs = make(rule, T=40)
    compiled = torch.compile(lambda **x: torch.ops.lattice.recur_chunked(rule, **x, chunk=16), backend="aot_eager",
                             fullgraph=True, dynamic=False)
    for got, want in zip(compiled(**inputs), lattice.recur(rule, **inputs, method="chunk", chunk=16)):
        torch.testing.assert_close(got, want)


def refuse(words, rule, inputs, **options):
    with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
        lattice.recur(rule, **inputs, **options)
    for word in ("[recur]", *words):
        assert str(word) in str(caught.value), f"{word!r} is not in: {caught.value}"


def test_unknown_method_names_the_choices():
    refuse(["chunks", "'exact'", "'chunk'"], "deltanet", make("deltanet"), method="chunks")


@pytest.mark.parametrize("chunk", [0, -64])
def test_chunk_below_one(chunk):
    refuse(["chunk", chunk, "at least 1"], "deltanet", make("deltanet"), method="chunk", chunk=chunk)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in CHUNKED])
def test_rules_without_a_chunk_form(rule):
    refuse([rule, *CHUNKED, "exact"], rule, make(rule), method="chunk")


@pytest.mark.parametrize("rule", ["lattice_dec", "no_such_rule"])
def test_the_operator_refuses_them_too(rule):
    inputs = make("deltanet")
    with pytest.raises(ValueError, match=f"{rule}.*deltanet"):
        torch.ops.lattice.recur_chunked(rule, inputs["q"], inputs["k"], inputs["v"], inputs["gamma"])


def test_arguments_the_chunk_form_does_not_take():
    inputs = make("deltanet", B=1)
    refuse(["igate", "deltanet"], "deltanet", inputs, igate=inputs["gamma"], method="chunk")
    refuse(["cu_seqlens", "deltanet"], "deltanet", inputs, cu_seqlens=torch.tensor([0, 9]), method="chunk")


@pytest.mark.parametrize("rule", CHUNKED)
def test_gates_and_shapes_are_checked_as_in_the_exact_form(rule):
    inputs = make(rule)
    refuse(["k"], rule, dict(inputs, k=inputs["k"][..., :3]), method="chunk")
    refuse(["v"], rule, dict(inputs, v=inputs["v"][0]), method="chunk")
    refuse(["state", "[2,2,4,6]"], rule, inputs, state=torch.zeros(2, 2, 5, 6, dtype=torch.float64), method="chunk")
    for gate in ("gamma", "mu"):
        if gate in inputs:
            refuse([rule, gate], rule, {name: x for name, x in inputs.items() if name != gate}, method="chunk")
        else:
            wrong = torch.ones(2, 9, 2, dtype=torch.float64)
            refuse([rule, gate], rule, dict(inputs, **{gate: wrong}), method="chunk")
