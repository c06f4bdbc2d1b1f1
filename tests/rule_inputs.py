"""Inputs of lattice.recur for every rule, and one call that also takes gradients."""

import torch

from oracle.rules_ref import GATES, WIDE_MU

RULES = tuple(GATES)
RECURRENT = tuple(rule for rule in RULES if rule != "softmax_attention")


def make(rule, B=2, T=9, H=2, M=4, D=6, *, dtype=torch.float64, seed=0):
    """Keyword arguments of lattice.recur without the state; keys of unit length, gates in (0,1)."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    k = normal(B, T, H, M)
    out = dict(q=normal(B, T, H, M), k=k / k.norm(dim=-1, keepdim=True), v=normal(B, T, H, D))
    for gate in GATES[rule]:
        if gate in ("igate", "fgate"):
            out[gate] = normal(B, T, H)
        else:
            out[gate] = torch.sigmoid(normal(B, T, H, M) if gate == "mu" and rule in WIDE_MU else normal(B, T, H))
    return {name: x.to(dtype) for name, x in out.items()}


def make_state(rule, B=2, H=2, M=4, D=6, *, dtype=torch.float64, seed=7, past=3):
    """A state such a rule could have reached, as the tuple of its tensors."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64).to(dtype)

    if rule == "softmax_attention":
        return normal(B, past, H, M), normal(B, past, H, D)
    if rule == "mlstm":
        return normal(B, H, M, D), normal(B, H, M), normal(B, H)
    return (normal(B, H, M, D),)


def pack(rule, tensors):
    """The tensors of a state as lattice.recur takes them: one tensor, or a tuple for mlstm and softmax attention."""
    return tuple(tensors) if rule in ("mlstm", "softmax_attention") else tensors[0]


def unpack(state):
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)


def slice_time(inputs, start, stop):
    return {name: x[:, start:stop] for name, x in inputs.items()}


def gradients(recur, rule, inputs, state=None, seed=1, **options):
    """(y, state tensors, {name: gradient}) for random cotangents of every output; states are state0, state1, ..."""
    leaves = {name: x.detach().clone().requires_grad_() for name, x in inputs.items()}
    parts = [x.detach().clone().requires_grad_() for x in state or ()]
    y, out = recur(rule, **leaves, state=pack(rule, parts) if parts else None, **options)
    outputs = (y, *unpack(out))
    rng = torch.Generator().manual_seed(seed)
    cotangents = [torch.randn(x.shape, generator=rng, dtype=torch.float64).to(x.dtype) for x in outputs]
    names = [*leaves, *(f"state{i}" for i in range(len(parts)))]
    grads = torch.autograd.grad(outputs, (*leaves.values(), *parts), cotangents)
    return y.detach(), [x.detach() for x in outputs[1:]], dict(zip(names, grads))
