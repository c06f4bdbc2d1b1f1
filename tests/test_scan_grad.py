"""torch.autograd.gradcheck of lattice.scan in float64: every combination, the state in and out included."""

import itertools

import pytest
import torch

import lattice
from scan_inputs import NORMALIZE, OBJECTIVES, make

COMBINATIONS = list(itertools.product(OBJECTIVES, NORMALIZE, (False, True), (False, True)))


def check(inputs, **options):
    names = list(inputs)
    leaves = [inputs[name].clone().requires_grad_() for name in names]

    def scan(*args):
        return lattice.scan(**dict(zip(names, args)), **options)

    assert torch.autograd.gradcheck(scan, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("objective,normalize,mu,lam", COMBINATIONS)
def test_gradcheck(objective, normalize, mu, lam):
    check(make(B=1, T=7, H=1, M=3, D=5, mu=mu, lam=lam), objective=objective, normalize=normalize)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradcheck_batches_and_heads(objective):
    check(make(B=2, T=3, H=2, M=2, D=3), objective=objective)


@pytest.mark.parametrize("objective,normalize,mu,lam", COMBINATIONS)
def test_gradcheck_cu_seqlens(objective, normalize, mu, lam):
    check(make(B=1, T=7, H=1, M=3, D=5, mu=mu, lam=lam, sequences=3), objective=objective, normalize=normalize,
          cu_seqlens=torch.tensor([0, 2, 6, 7]))


def test_gradcheck_across_a_recomputed_block():
    check(make(B=1, T=35, H=1, M=2, D=3))


@pytest.mark.parametrize("wanted", ["q", "k", "v", "gamma", "mu", "lam", "state"])
def test_gradient_of_one_input_alone(wanted):
    """An input that needs no gradient changes none of the others."""
    inputs = make(lam=True)
    both = []
    for needs in (set(inputs), {wanted}):
        leaves = {name: x.clone().requires_grad_(name in needs) for name, x in inputs.items()}
        y, state = lattice.scan(**leaves)
        (y.square().sum() + state.sum()).backward()
        both.append(leaves[wanted].grad)
    assert torch.equal(*both)


def test_gradient_through_one_output_alone():
    inputs = {name: x.requires_grad_() for name, x in make().items()}
    y, state = lattice.scan(**inputs)
    through_y = torch.autograd.grad(y.sum(), inputs["k"], retain_graph=True)[0]
    through_state = torch.autograd.grad(state.sum(), inputs["k"], retain_graph=True)[0]
    through_both = torch.autograd.grad(y.sum() + state.sum(), inputs["k"])[0]
    torch.testing.assert_close(through_y + through_state, through_both, rtol=1e-12, atol=1e-12)
    (of_query,) = torch.autograd.grad(lattice.scan(**inputs)[1].sum(), inputs["q"], allow_unused=True)
    assert of_query is None or of_query.abs().max() == 0.0, "the state does not depend on the query"


def test_gradients_of_a_split_sequence_flow_through_the_state():
    """Two calls joined by the state are one call, in the gradients too."""
    inputs = make(T=45)
    results = []
    for cut in (None, 19):
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        state, parts = leaves["state"], []
        for start, stop in [(0, 45)] if cut is None else [(0, cut), (cut, 45)]:
            part = {name: x[:, start:stop] for name, x in leaves.items() if name != "state"}
            y, state = lattice.scan(**part, state=state)
            parts.append(y)
        (torch.cat(parts, 1).square().sum() + state.sum()).backward()
        results.append({name: x.grad for name, x in leaves.items()})
    for name in inputs:
        torch.testing.assert_close(results[0][name], results[1][name], rtol=1e-12, atol=1e-12)


def test_double_backward_says_that_it_is_not_there():
    inputs = {name: x.requires_grad_() for name, x in make().items()}
    y, _ = lattice.scan(**inputs)
    (dk,) = torch.autograd.grad(y.sum(), inputs["k"], create_graph=True)
    with pytest.raises(RuntimeError, match=r"\[scan\] has first derivatives only.*create_graph"):
        torch.autograd.grad(dk.sum(), inputs["q"])
