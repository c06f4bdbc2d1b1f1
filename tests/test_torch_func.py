"""torch.func over the operators: grad, vjp, vmap, jacrev, gradients of single samples, functional_call."""

import pytest
import torch
from torch.func import functional_call, grad, jacrev, vjp, vmap

import lattice
import rule_inputs
from scan_inputs import NAMES, make

FORMS = [dict(), dict(objective="enc", normalize="none"), dict(method="linear2", chunk=4),
         dict(method="linear2", chunk=4, sweeps=2)]
SAMPLES = 3


def tokens(form):
    """Enough for the forward pass to keep states and notes for the backward pass; the refined chunk is slow."""
    return 9 if "sweeps" in form else 40


def samples(seed=0, **options):
    """Inputs of scan with a dimension of samples in front."""
    each = [make(seed=seed + i, **options) for i in range(SAMPLES)]
    return {name: torch.stack([one[name] for one in each]) for name in each[0]}


def loss(inputs, **options):
    y, state = lattice.scan(**inputs, **options)
    return y.square().sum() + state.sin().sum()


def expected(inputs, **options):
    leaves = {name: x.detach().clone().requires_grad_() for name, x in inputs.items()}
    return dict(zip(leaves, torch.autograd.grad(loss(leaves, **options), tuple(leaves.values()))))


def assert_same(got, wanted):
    assert got.keys() == wanted.keys()
    for name in wanted:
        assert torch.equal(got[name], wanted[name]), name


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_grad_is_that_of_backward(form):
    inputs = make(T=tokens(form))
    assert_same(grad(loss)(inputs, **form), expected(inputs, **form))


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("dim", [0, 2])
def test_vmap_is_a_loop(form, dim):
    inputs = samples(T=9)
    moved = {name: x.movedim(0, dim) for name, x in inputs.items()}
    y, state = vmap(lambda x: lattice.scan(**x, **form), in_dims=dim)(moved)
    for i in range(SAMPLES):
        one = lattice.scan(**{name: x[i] for name, x in inputs.items()}, **form)
        assert torch.equal(y[i], one[0]) and torch.equal(state[i], one[1])


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_gradients_of_single_samples(form):
    inputs = samples(T=tokens(form))
    got = vmap(grad(lambda x: loss(x, **form)))(inputs)
    wanted = [expected({name: x[i] for name, x in inputs.items()}, **form) for i in range(SAMPLES)]
    assert_same(got, {name: torch.stack([one[name] for one in wanted]) for name in inputs})


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lam"])
def test_one_argument_with_samples_the_others_shared(name):
    inputs = make(T=40)
    several = torch.stack([inputs[name], 0.5 * inputs[name]])
    of = vmap(grad(lambda x: loss(dict(inputs, **{name: x}))))
    for got, x in zip(of(several), several):
        assert torch.equal(got, expected(dict(inputs, **{name: x}))[name])


def test_grad_around_vmap():
    inputs = samples(T=40)
    got = grad(lambda x: vmap(loss)(x).sum())(inputs)
    assert_same(got, expected_sum(inputs))


def expected_sum(inputs):
    parts = [expected({name: x[i] for name, x in inputs.items()}) for i in range(SAMPLES)]
    return {name: torch.stack([part[name] for part in parts]) for name in inputs}


def test_backward_through_vmap():
    inputs = {name: x.requires_grad_() for name, x in samples(T=40).items()}
    grads = torch.autograd.grad(vmap(loss)(inputs).sum(), tuple(inputs.values()))
    assert_same(dict(zip(inputs, grads)), expected_sum(inputs))


def test_vmap_in_vmap():
    inputs = make(T=40)
    scale = torch.tensor([[1.0, 0.5], [0.25, 2.0], [1.5, 3.0]], dtype=torch.float64)
    of = vmap(vmap(grad(lambda s: loss(dict(inputs, v=s * inputs["v"])))))
    for row, scales in zip(of(scale), scale):
        for got, s in zip(row, scales):
            wanted = (expected(dict(inputs, v=s * inputs["v"]))["v"] * inputs["v"]).sum()
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("form", FORMS[:3], ids=str)
def test_jacrev(form):
    inputs = make(B=1, T=3, H=1, M=2, D=2)
    got = jacrev(lambda k: lattice.scan(**dict(inputs, k=k), **form)[0])(inputs["k"])
    wanted = torch.autograd.functional.jacobian(lambda k: lattice.scan(**dict(inputs, k=k), **form)[0], inputs["k"])
    assert torch.equal(got, wanted)


def test_vjp_of_the_state_alone():
    inputs = make(T=40)
    (y, state), back = vjp(lambda k: lattice.scan(**dict(inputs, k=k)), inputs["k"])
    leaf = inputs["k"].clone().requires_grad_()
    out = lattice.scan(**dict(inputs, k=leaf))
    (wanted,) = torch.autograd.grad(out[1].sum(), leaf)
    (got,) = back((torch.zeros_like(y), torch.ones_like(state)))
    assert torch.equal(got, wanted)


def test_packed_sequences():
    inputs = samples(B=1, T=40, sequences=3)
    bounds = torch.tensor([0, 4, 4, 40])
    got = vmap(grad(lambda x: loss(x, cu_seqlens=bounds)))(inputs)
    for i in range(SAMPLES):
        wanted = expected({name: x[i] for name, x in inputs.items()}, cu_seqlens=bounds)
        assert_same({name: x[i] for name, x in got.items()}, wanted)


@pytest.mark.parametrize("rule", ["deltanet", "gla", "mlstm", "ttt", "softmax_attention"])
def test_recur(rule):
    inputs = {name: torch.stack([x, 0.5 * x]) for name, x in rule_inputs.make(rule, T=40).items()}

    def recur_loss(x):
        return lattice.recur(rule, **x)[0].square().sum()

    got = vmap(grad(recur_loss))(inputs)
    for i in range(2):
        leaves = {name: x[i].clone().requires_grad_() for name, x in inputs.items()}
        wanted = torch.autograd.grad(recur_loss(leaves), tuple(leaves.values()))
        for name, x in zip(leaves, wanted):
            torch.testing.assert_close(got[name][i], x, rtol=1e-12, atol=1e-12, msg=name)


def test_functional_call():
    class Memory(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.state = torch.nn.Parameter(make()["state"])

        def forward(self, **x):
            return lattice.scan(**x, state=self.state)[0]

    inputs = {name: x for name, x in make(T=40).items() if name != "state"}
    module = Memory()
    (module(**inputs).square().sum()).backward()
    got = grad(lambda p: functional_call(module, p, (), inputs).square().sum())(dict(module.named_parameters()))
    assert torch.equal(got["state"], module.state.grad)


@pytest.mark.parametrize("rule", ["deltanet", "gla", "mlstm"])
def test_second_derivatives_of_recur_are_refused(rule):
    inputs = rule_inputs.make(rule)
    for name in inputs:

        def first(x, name=name):
            return grad(lambda u: lattice.recur(rule, **dict(inputs, **{name: u}))[0].square().sum())(x).sum()

        with pytest.raises(RuntimeError, match=r"\[recur\] has first derivatives only"):
            grad(first)(inputs[name])


@pytest.mark.parametrize("form", [dict(), dict(method="linear2", chunk=4)], ids=str)
def test_second_derivatives_are_refused(form):
    inputs = make()
    with pytest.raises(RuntimeError, match=r"\[scan\] has first derivatives only"):
        grad(lambda k: grad(lambda x: loss(dict(inputs, k=x), **form))(k).sum())(inputs["k"])
