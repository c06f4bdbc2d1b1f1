"""torch.vmap over the operators: a vmapped dimension becomes part of the batch.

With torch.func.grad inside this gives gradients of single samples. Which of the three operators of a recurrence vmap meets
depends on the order of the transforms: `_recurrence` where it is the innermost, `_forward` and `_backward` beneath a grad.
Results have the bits of calls one by one, because a sequence's bits do not depend on its batch.
"""

from typing import Any

import torch
from torch import Tensor

_CU_SEQLENS = 7  # its place among the arguments of a recurrence
_KEPT = 8  # that of what the forward pass kept, among those of _backward


def _each(op, info, in_dims, *args):
    """One call for every sample. Outputs that are lists stay lists."""

    def sample(x, dim, i):
        if isinstance(x, (list, tuple)):
            return [sample(one, one_dim, i) for one, one_dim in zip(x, dim)]
        return x if dim is None else x.select(dim, i)

    calls = [op(*(sample(x, dim, i) for x, dim in zip(args, in_dims))) for i in range(info.batch_size)]
    return _stacked(calls)


def _stacked(calls) -> tuple[Any, Any]:
    out: list[Any] = []
    dims: list[Any] = []
    for parts in zip(*calls):
        if isinstance(parts[0], Tensor):
            out.append(torch.stack(parts))
            dims.append(0)
        else:
            inner, inner_dims = _stacked(parts)
            out.append(list(inner))
            dims.append(list(inner_dims))
    return tuple(out), tuple(dims)


def _fold(x, dim, size):
    """The vmapped dimension and the batch, the first of what is left, as one."""
    if isinstance(x, (list, tuple)):
        return [_fold(one, one_dim, size) for one, one_dim in zip(x, dim)]
    if not isinstance(x, Tensor):
        return x
    x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
    return x.flatten(0, 1)


def _unfold(x, size):
    return x.reshape(size, x.shape[0] // size, *x.shape[1:])


def _recurrence(op, info, in_dims, *args):
    """_recurrence and _forward. What the latter keeps is opaque: a flat tensor, of a size that goes with the batch."""
    if args[_CU_SEQLENS] is not None:  # they divide a batch of one row
        return _each(op, info, in_dims, *args)
    out = op(*(_fold(x, dim, info.batch_size) for x, dim in zip(args, in_dims)))
    return tuple(_unfold(x, info.batch_size) for x in out), (0,) * len(out)


def _backward(op, info, in_dims, *args):
    # Where the forward pass was not vmapped, only the cotangents are: jacrev.
    if args[_CU_SEQLENS] is not None or in_dims[_KEPT] is None:
        return _each(op, info, in_dims, *args)
    *grads, dgates = op(*(_fold(x, dim, info.batch_size) for x, dim in zip(args, in_dims)))
    # Gradients of gates that are left out are empty, and stay so.
    gates = [_unfold(x, info.batch_size) if x.numel() else x for x in dgates]
    gate_dims = [0 if x.numel() else None for x in dgates]
    return (*(_unfold(x, info.batch_size) for x in grads), gates), (*(0 for _ in grads), gate_dims)


def _rule(op, run):
    return lambda info, in_dims, *args: run(op, info, in_dims, *args)


def register() -> None:
    """Gives the operators their rules; once."""
    ops = torch.ops.lattice
    rules = {"_recurrence": _recurrence, "_forward": _recurrence, "_backward": _backward, "_chunk_scan": _each,
             "_chunk_forward": _each, "_chunk_backward": _each}
    for name, run in rules.items():
        torch.library.register_vmap(f"lattice::{name}", _rule(getattr(ops, name), run))
