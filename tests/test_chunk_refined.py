"""sweeps: the refined chunk tends to the exact recurrence, and is safe where plain sweeps diverge."""

import pytest
import torch

import lattice
from chunk_forms import METHODS, NORMALIZE, assert_close, matrix_scan
from scan_inputs import OBJECTIVES, gradients, make, unit


def error(got, want):
    return float((got.double() - want.double()).norm() / want.double().norm())


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_sweep_is_linear2(objective, normalize):
    x = make(T=40)
    options = dict(method="linear2", chunk=16, objective=objective, normalize=normalize)
    want = gradients(lattice.scan, x, **options)
    assert_close(gradients(lattice.scan, x, sweeps=1, **options), want, 1e-12)


@pytest.mark.parametrize("chunk", [2, 8, 12])
@pytest.mark.parametrize("normalize", ["token", "none"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_as_many_sweeps_as_tokens_are_exact(objective, normalize, chunk):
    x = make(T=26, M=5, D=8)
    x["v"] *= 0.3
    options = dict(objective=objective, normalize=normalize)
    got = gradients(lattice.scan, x, method="linear2", chunk=chunk, sweeps=chunk, **options)
    assert_close(got, gradients(lattice.scan, x, **options), 1e-8)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_sweep_comes_closer(objective):
    x = make(B=1, T=128, H=2, M=32, D=32)
    x["v"] /= 32**0.5
    exact, _ = lattice.scan(**x, objective=objective)
    errors = [error(lattice.scan(**x, method="linear2", chunk=16, sweeps=r, objective=objective)[0], exact)
              for r in (1, 2, 4, 8)]
    assert all(b < 0.5 * a for a, b in zip(errors, errors[1:])), errors


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_auto_meets_its_tolerance(tolerance):
    x = make(B=1, T=128, H=2, M=32, D=32)
    exact, _ = lattice.scan(**x)
    y, _ = lattice.scan(**x, method="linear2", chunk=32, sweeps="auto", tolerance=tolerance)
    assert error(y, exact) < 20 * tolerance


@pytest.mark.parametrize("options", [dict(sweeps=3), dict(sweeps="auto", tolerance=1e-6)], ids=str)
def test_gradients_are_those_of_plain_autograd(options):
    """The operator recomputes chunk by chunk; the matrix form is differentiated as it stands."""
    x = make(T=40)
    got = gradients(lattice.scan, x, method="linear2", chunk=16, **options)
    if options["sweeps"] == "auto":
        options = dict(options, sweeps=16)
    assert_close(got, gradients(matrix_scan, x, method="linear2", chunk=16, **options), 1e-12)


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradcheck(objective, normalize):
    x = make(B=1, T=6, H=1, M=3, D=3)
    names = list(x)

    def scan(*args):
        return lattice.scan(**dict(zip(names, args)), method="linear2", chunk=4, sweeps=2, objective=objective,
                            normalize=normalize)

    assert torch.autograd.gradcheck(scan, [t.requires_grad_() for t in x.values()], eps=1e-6, atol=1e-6, rtol=1e-5)


def hostile(kind, dtype):
    """Inputs on which unguarded sweeps diverge or grow without bound."""
    x = make(B=1, T=128, H=2, M=16, D=16, mu=False, seed=5)
    if kind == "one token repeated":
        for name in ("q", "k", "v"):
            x[name][:] = x[name][:, :1].clone()
        x["gamma"][:] = 1.0
    elif kind == "long keys":
        x["k"] *= 4.0
    elif kind == "very long keys and values":
        x["k"] *= 30.0
        x["v"] *= 30.0
    elif kind == "short slots":
        x["state"] = 1e-2 * unit(x["state"])
    return {name: t.to(dtype) for name, t in x.items()}


KINDS = ("one token repeated", "long keys", "very long keys and values", "short slots")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("sweeps", [2, 4, "auto"])
@pytest.mark.parametrize("chunk", [16, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_finite_and_never_worse_than_linear2(kind, chunk, sweeps, dtype):
    x = hostile(kind, dtype)
    exact, _ = lattice.scan(**{name: t.double() for name, t in x.items()})
    plain, _ = lattice.scan(**x, method="linear2", chunk=chunk)
    y, state, grads = gradients(lattice.scan, x, method="linear2", chunk=chunk, sweeps=sweeps)
    for t in (y, state, *grads.values()):
        assert torch.isfinite(t).all()
    worst = error(plain, exact)
    assert error(y, exact) <= (worst if worst == worst else float("inf")) + 1e-3


def repeated(T):
    once = make(B=1, T=1, H=2, M=16, D=16, mu=False, dtype=torch.float32)
    x = {name: t if name == "state" else t.expand(1, T, *t.shape[2:]).contiguous() for name, t in once.items()}
    x["gamma"] = torch.ones_like(x["gamma"])
    return x


@pytest.mark.parametrize("chunk", [4, 64])
@pytest.mark.parametrize("options", [*(dict(method=m, normalize=n) for m in METHODS for n in ("token", "none")),
                                     dict(method="linear1", normalize="chunk"), dict(method="linear2", sweeps=2), dict(method="linear2", sweeps="auto")], ids=str)
def test_the_same_token_4096_times(options, chunk):
    """All but linear2 with normalize="chunk" promise this (docs/exact-or-chunked.md)."""
    y, state = lattice.scan(**repeated(4096), chunk=chunk, **options)
    assert torch.isfinite(y).all() and torch.isfinite(state).all()
