"""torch.vmap over the operators: for recurrences a vmapped dimension becomes part of the batch, layers are called for each sample.

With torch.func.grad inside this gives gradients of single samples. Which of the operators of a recurrence vmap meets
depends on the order of the transforms: `scan` or `recur_with` where it is the innermost, the others beneath a grad.
Results have the bits of calls one by one, because a sequence's bits do not depend on its batch. Layers are not folded into
the batch, because gradients of their weights would be added over it.
"""

from typing import Any

import torch
from torch import Tensor

_CU_SEQLENS = 7  # its place among the arguments of a recurrence
_KEPT = 8  # that of what the forward pass kept, among those of _backward
# Operators that are made of others: vmap meets them where it is the innermost.
_LAYERS = ("causal_conv", "unit_convs", "queries_and_keys", "rms_norm", "add_rms_norm", "unit_vectors", "normalize_vectors",
           "gated_layer_norm", "silu_times", "activate", "projections", "rotate", "gates", "linear_cross_entropy")


def _each(op, info, in_dims, *args):
    """One call for every sample."""

    def sample(x, dim, i):
        if isinstance(x, (list, tuple)):
            return [sample(one, one_dim, i) for one, one_dim in zip(x, dim)]
        return x if dim is None else x.select(dim, i)

    calls = [op(*(sample(x, dim, i) for x, dim in zip(args, in_dims))) for i in range(info.batch_size)]
    return _stacked(calls)


def _stacked(parts) -> tuple[Any, Any]:
    """The results of the calls along a new first dimension, and where that is. Lists stay lists."""
    if isinstance(parts[0], Tensor):
        return torch.stack(parts), 0
    kind = list if isinstance(parts[0], list) else tuple
    each = [_stacked(place) for place in zip(*parts)]
    return kind(out for out, _ in each), kind(dim for _, dim in each)


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


def _in_batch(place):
    """A rule that runs all samples as one batch, for an operator whose cu_seqlens stand at that place. What _forward keeps is
    opaque: a flat tensor, of a size that goes with the batch."""

    def rule(op, info, in_dims, *args):
        if len(args) > place and args[place] is not None:  # they divide a batch of one row
            return _each(op, info, in_dims, *args)
        out = op(*(_fold(x, dim, info.batch_size) for x, dim in zip(args, in_dims)))
        return tuple(_unfold(x, info.batch_size) for x in out), (0,) * len(out)

    return rule


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
    rules = {name: _in_batch(_CU_SEQLENS) for name in ("scan", "_recurrence", "_forward")}
    rules |= {"recur_with": _in_batch(_CU_SEQLENS - 1), "attention": _each, "_backward": _backward}
    rules |= dict.fromkeys([*_LAYERS, "_chunk_scan", "_chunk_forward", "_chunk_backward", "_linear_cross_entropy"], _each)
    for layer in ("_causal_conv", "_unit_convs", "_row_norm", "_gated_layer_norm", "_silu_times", "_projections"):
        rules |= {layer: _each, f"{layer}_backward": _each}
    for name, run in rules.items():
        torch.library.register_vmap(f"lattice::{name}", _rule(getattr(ops, name), run))
