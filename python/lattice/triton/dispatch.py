"""lattice::_forward and lattice::_backward on GPUs, registered from Python: the one file that knows their schema.

The public operators, their checks, autograd and shapes are the C++ ones of src/ops and serve every device; on a GPU they
end here. Triton is imported by the first call, so that nobody else needs it. Not yet run on hardware (docs/gpu.md).
"""

import contextlib
import functools
from typing import NamedTuple

import torch

from lattice.ops import memories

_GPU = "CUDA"  # torch's key for ROCm as well
_OTHERS = ("XPU", "MPS")
_PLACES = {"write": 0, "forget": 1, "shrink": 2}  # of gates among the kernels' gamma, mu and lam, by what they do
_library = None  # the registrations live as long as it does


class _Known(NamedTuple):
    """What is asked of a memory's description in every call."""

    operator: str  # how messages begin
    places: tuple[int, ...]  # of its gates, in the order in which the operators carry them, among those of the kernels


@functools.cache
def _known(rule):
    for memory in memories():
        if memory["recur_name"] == rule:
            places = tuple(_PLACES[gate["role"]] for gate in memory["gates"])
            return _Known("[scan]" if memory["objective"] else "[recur]", places)
    return _Known("[recur]", ())


@functools.cache
def _kernels():
    from lattice.triton import launch

    return launch


def _launcher(rule, q, v):
    """The module with the kernels, once it is clear that they can do this."""
    op = _known(rule).operator
    try:
        kernels = _kernels()
    except ImportError as error:
        raise NotImplementedError(f"{op} tensors on {q.device} need Triton, which cannot be imported ({error}); install "
                                  "triton==3.7.1, or move the tensors to the CPU") from error
    if rule not in kernels.RULES:
        raise NotImplementedError(f"{op} {rule} has no GPU kernel; those that have one are {', '.join(kernels.RULES)}; "
                                  "move the tensors to the CPU for the others")
    M, D, largest = q.shape[3], v.shape[3], kernels.LARGEST
    if max(M, D) > largest:
        raise NotImplementedError(f"{op} the GPU kernels hold up to {largest} slots of {largest} numbers in registers, got "
                                  f"M = {M} and D = {D}; use more heads, or CPU tensors")
    return kernels


def _placed(rule, kernels, gates):
    """The gates of a memory as those of the kernels."""
    named = [None, None, None]
    for place, gate in zip(_known(rule).places, gates):
        named[place] = gate
    return kernels.Gates(*named)


def _on(x):
    """The device of x is the current one, as Triton wants it."""
    return torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()


def forward(rule, normalize, q, k, v, gates, state, cu_seqlens, keep, activations):
    """`activations` is False on a GPU: checkpoints alone are saved."""
    torch.ops.lattice._check(rule, normalize, q, k, v, gates, state, cu_seqlens)
    kernels = _launcher(rule, q, v)
    saved = state.new_empty(kernels.checkpoints(q, state, cu_seqlens) if keep else 0)
    with _on(q):
        y, state_out = kernels.forward(rule, normalize, q, k, v, _placed(rule, kernels, gates), state, cu_seqlens, saved)
    return y, state_out, saved


def backward(rule, normalize, q, k, v, gates, state, cu_seqlens, saved, dy, dstate_out):
    kernels = _launcher(rule, q, v)
    with _on(q):
        dq, dk, dv, dplaced, dstate = kernels.backward(rule, normalize, q, k, v, _placed(rule, kernels, gates), state,
                                                       cu_seqlens, saved, dy, dstate_out)
    # Outputs must not alias each other, the empty ones included.
    dgates = [state.new_empty(0) if dplaced[place] is None else dplaced[place] for place in _known(rule).places]
    return dq, dk, dv, dstate, dgates


def _refuse(rule, normalize, q, *_):
    raise NotImplementedError(f"{_known(rule).operator} there are kernels for the CPU and for CUDA and ROCm GPUs, not for "
                              f"{q.device}; move the tensors to one of those, or use a chunk form (method 'linear2')")


def register(key=_GPU, override=False):
    """Makes the kernels those of a dispatch key; tests put them in place of the CPU's (`override`)."""
    global _library
    _library = torch.library.Library("lattice", "IMPL")
    for name, run in (("_forward", forward), ("_backward", backward)):
        _library.impl(name, run, key, allow_override=override)
        if key == _GPU:
            for other in _OTHERS:
                _library.impl(name, _refuse, other)
