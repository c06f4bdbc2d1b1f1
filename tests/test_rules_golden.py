"""lattice.recur against the golden vectors and against the oracle, in float64 and float32."""

import pytest
import torch

import golden_files
import lattice
from oracle import rules_ref
from rule_inputs import RECURRENT, RULES, gradients, make, make_state

DTYPES = [torch.float64, torch.float32]


def rule_of(name):
    return name.removeprefix("baseline_").removesuffix("_state_grads")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", golden_files.names("baseline_"))
def test_golden(name, dtype):
    g, rule = golden_files.load(name), rule_of(name)
    leaves = {key: g.leaf(key, dtype) for key in set(golden_files.GRADIENT_OF.values())}
    state = tuple(leaves[key] for key in ("S0", "n0", "m0")) if rule == "mlstm" else leaves["S0"]
    y, out = lattice.recur(rule, leaves["Q"], leaves["K"], leaves["V"], state=state,
                           **{gate: leaves[gate] for gate in rules_ref.GATES[rule]})
    assert y.dtype == dtype
    g.judge("Y", y, dtype)
    outputs, cotangents = [y], [g.cotangent("dY", dtype)]
    if rule != "softmax_attention":
        for key, value in zip(("S_final", "n_final", "m_final"), out if rule == "mlstm" else (out,)):
            g.judge(key, value, dtype)
            outputs.append(value)
            cotangents.append(g.cotangent("d" + key, dtype))
    wanted = [key for key in g.tensors if key in golden_files.GRADIENT_OF]
    grads = torch.autograd.grad(outputs, [leaves[golden_files.GRADIENT_OF[key]] for key in wanted], cotangents)
    for key, value in zip(wanted, grads):
        g.judge(key, value, dtype)


def close(a, b, tolerance, what):
    error = (a.double() - b.double()).abs().max()
    assert error <= tolerance * max(float(b.abs().max()), 1e-3), f"{what} is off by {float(error):.3e}"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("M,D,T", [(1, 1, 3), (3, 17, 40), (17, 3, 40), (16, 64, 33), (64, 64, 5)])
def test_oracle(rule, M, D, T):
    inputs, state = make(rule, B=1, T=T, M=M, D=D), make_state(rule, B=1, M=M, D=D)
    y, out, grads = gradients(lattice.recur, rule, inputs, state)
    y_ref, out_ref, grads_ref = gradients(rules_ref.recur, rule, inputs, state)
    close(y, y_ref, 1e-9, "y")
    for i, (a, b) in enumerate(zip(out, out_ref, strict=True)):
        close(a, b, 1e-9, f"state {i}")
    for name in grads_ref:
        close(grads[name], grads_ref[name], 1e-9, f"gradient of {name}")


@pytest.mark.parametrize("rule", RULES)
def test_float32_at_the_size_of_a_real_head(rule):
    inputs, state = make(rule, B=1, T=100, M=64, D=64), make_state(rule, B=1, M=64, D=64)
    small = [x.float() for x in state]
    y, out, grads = gradients(lattice.recur, rule, {name: x.float() for name, x in inputs.items()}, small)
    y_ref, out_ref, grads_ref = gradients(rules_ref.recur, rule, inputs, state)
    close(y, y_ref, 1e-4, "y")
    for name in grads_ref:
        close(grads[name], grads_ref[name], 1e-3, f"gradient of {name}")


@pytest.mark.parametrize("rule", RECURRENT)
def test_no_state_is_a_state_of_zeros(rule):
    inputs = make(rule)
    y, out = lattice.recur(rule, **inputs)
    zeros = rules_ref.zero_state(rule, inputs["q"], inputs["v"])
    y_zeros, out_zeros = lattice.recur(rule, **inputs, state=zeros)
    assert torch.equal(y, y_zeros)
    y_ref, _ = rules_ref.recur(rule, **inputs)
    close(y, y_ref, 1e-11, "y")
