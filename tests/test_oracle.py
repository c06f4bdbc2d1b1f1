"""The references themselves: right before anything is compared with them."""

import numpy as np
import pytest
import torch

import golden_files
from oracle import chunk_ref, figures_ref, lattice_ref, rules_ref

EXACT = golden_files.names("exact_")
LINEAR = golden_files.names("linear")
RULES = golden_files.names("baseline_")
INPUTS = ("S0", "K", "V", "Q", "gamma", "mu", "lam")


@pytest.mark.parametrize("name", EXACT)
def test_exact_forward(name):
    g = golden_files.load(name)
    Y, S = lattice_ref.exact_forward(*map(g.get, INPUTS), objective=g.meta["objective"], normalize=g.meta["normalize"])
    g.judge("Y", Y)
    g.judge("S_final", S)


@pytest.mark.parametrize("name", EXACT)
def test_exact_backward(name):
    g = golden_files.load(name)
    grads = lattice_ref.exact_backward(*map(g.get, INPUTS), g["dY"], g["dS_final"], objective=g.meta["objective"],
                                       normalize=g.meta["normalize"])
    expected = {key for key in g.tensors if key in golden_files.GRADIENT_OF}
    assert expected == set(grads)
    for key, value in grads.items():
        g.judge(key, value)


@pytest.mark.parametrize("name", LINEAR)
def test_chunk_forward(name):
    g = golden_files.load(name)
    Y, S = chunk_ref.chunk_forward(*map(g.get, INPUTS[:6]), method=g.meta["method"], chunk=g.meta["chunk"],
                                   objective=g.meta["objective"], normalize=g.meta["normalize"])
    g.judge("Y", Y)
    g.judge("S_final", S)


@pytest.mark.parametrize("objective", ["dec", "enc", "sim"])
@pytest.mark.parametrize("normalize", ["token", "none"])
@pytest.mark.parametrize("method", ["linear1", "linear2"])
def test_chunk_of_one_token_is_the_exact_step(objective, normalize, method):
    g = golden_files.load("exact_dec_token")
    inputs = [g[key] for key in INPUTS[:6]]
    exact = lattice_ref.exact_forward(*inputs, objective=objective, normalize=normalize)
    chunk = chunk_ref.chunk_forward(*inputs, method=method, chunk=1, objective=objective, normalize=normalize)
    for x, y in zip(exact, chunk):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("objective", ["dec", "enc", "sim"])
def test_the_update_is_the_gradient_of_the_objective(objective):
    """Delta is half the gradient of the squared losses and the gradient of the similarity, by autograd."""
    rng = np.random.default_rng(0)
    S, k, v = rng.normal(size=(4, 6)), rng.normal(size=4), rng.normal(size=6)
    one = np.array(1.0)
    _, kept = lattice_ref.exact_step(S, k, v, one, one, objective=objective, normalize="none")

    St, kt, vt = (torch.tensor(x) for x in (S, k, v))
    St.requires_grad_()
    Phi = St / ((St * St).sum(-1, keepdim=True) + lattice_ref.EPS**2).sqrt()
    loss = {"dec": lambda: 0.5 * (kt @ Phi - vt).square().sum(),
            "enc": lambda: 0.5 * (Phi @ vt - kt).square().sum(),
            "sim": lambda: -torch.dot(kt @ Phi, vt)}[objective]()
    (gradient,) = torch.autograd.grad(loss, St)
    np.testing.assert_allclose(kept["Delta"], gradient.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    g = golden_files.load(name)
    rule = g.name.removeprefix("baseline_").removesuffix("_state_grads")
    leaves = {key: g.leaf(key, torch.float64) for key in set(golden_files.GRADIENT_OF.values())}
    state = leaves["S0"] if rule != "mlstm" else tuple(leaves[key] for key in ("S0", "n0", "m0"))
    gates = {gate: leaves[gate] for gate in rules_ref.GATES[rule]}
    y, out = rules_ref.recur(rule, leaves["Q"], leaves["K"], leaves["V"], state=state, **gates)
    g.judge("Y", y)

    outputs, cotangents = [y], [g.cotangent("dY", torch.float64)]
    if rule != "softmax_attention":
        finals = dict(zip(("S_final", "n_final", "m_final"), out if rule == "mlstm" else (out,)))
        for key, value in finals.items():
            g.judge(key, value)
            outputs.append(value)
            cotangents.append(g.cotangent("d" + key, torch.float64))
    wanted = [key for key in g.tensors if key in golden_files.GRADIENT_OF]
    grads = torch.autograd.grad(outputs, [leaves[golden_files.GRADIENT_OF[key]] for key in wanted], cotangents)
    for key, value in zip(wanted, grads):
        g.judge(key, value)


def test_the_figures_file_is_what_the_oracle_measures():
    file = golden_files.load("figures")
    measured = figures_ref.tensors()
    assert set(file.tensors) == set(measured)
    for key, value in measured.items():
        np.testing.assert_allclose(file[key], value, rtol=1e-12, atol=1e-14, err_msg=key)


def test_figures_by_hand():
    # One slot to the right, a value at right angles to it, gamma 1: the slot turns by 45 degrees.
    S, k, v = np.array([[1.0, 0.0]]), np.array([1.0]), np.array([0.0, 1.0])
    _, figures = figures_ref.step_figures(S, k, v, 1.0, 1.0, 0.0, objective="sim", normalize="token")
    assert figures["beta"] == pytest.approx(np.sqrt(0.5))
    assert figures["novelty"] == pytest.approx(1.0)
    assert figures["answer"] == pytest.approx(0.0)
    assert figures["write"] == pytest.approx(2 * np.sin(np.pi / 8))
    # The slot's own value: nothing is new, the memory answers with it.
    _, figures = figures_ref.step_figures(S, k, np.array([2.0, 0.0]), 1.0, 0.5, 0.0, objective="sim", normalize="none")
    assert figures["novelty"] == pytest.approx(0.0, abs=1e-9)
    assert figures["answer"] == pytest.approx(1.0)
