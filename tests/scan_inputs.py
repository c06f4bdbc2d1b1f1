"""Inputs of lattice.scan for the tests, and one call that also takes gradients."""

import torch

OBJECTIVES = ("dec", "enc", "sim")
NORMALIZE = ("token", "none")
NAMES = ("q", "k", "v", "gamma", "mu", "lam", "state")


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def make(B=2, T=9, H=2, M=4, D=6, *, dtype=torch.float64, seed=0, mu=True, lam=False, sequences=None):
    """Keyword arguments of lattice.scan. lam is small enough to shrink without emptying the slots."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    out = dict(
        q=unit(normal(B, T, H, M)),
        k=unit(normal(B, T, H, M)),
        v=normal(B, T, H, D),
        gamma=torch.sigmoid(normal(B, T, H)),
        state=unit(normal(sequences or B, H, M, D)) * torch.exp(0.3 * normal(sequences or B, H, M, 1)),
    )
    if mu:
        out["mu"] = torch.sigmoid(normal(B, T, H) + 2.0)
    if lam:
        out["lam"] = 0.05 * torch.sigmoid(normal(B, T, H))
    return {name: x.to(dtype) for name, x in out.items()}


def slice_time(inputs, start, stop, state):
    """The same sequence from start to stop, entered with the given state."""
    part = {name: x[:, start:stop] for name, x in inputs.items() if name != "state"}
    return dict(part, state=state)


def gradients(scan, inputs, seed=1, **options):
    """(y, state, {input name: gradient}) for random cotangents of both outputs."""
    leaves = {name: x.detach().clone().requires_grad_() for name, x in inputs.items()}
    y, state = scan(**leaves, **options)
    rng = torch.Generator().manual_seed(seed)
    cotangents = [torch.randn(x.shape, generator=rng, dtype=torch.float64).to(x.dtype) for x in (y, state)]
    grads = torch.autograd.grad((y, state), tuple(leaves.values()), cotangents)
    return y.detach(), state.detach(), dict(zip(leaves, grads))
