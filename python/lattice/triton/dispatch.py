"""lattice::_forward and lattice::_backward on GPUs, registered from Python: the one file that knows their schema.

The public operators, their checks, autograd and shapes are the C++ ones of src/ops and serve every device; on a GPU they
end here. Triton is imported by the first call, so that nobody else needs it. Not yet run on hardware (docs/gpu.md).
"""

import contextlib
import functools

import torch

from lattice.ops import memories

_GPU = "CUDA"  # torch's key for ROCm as well
_OTHERS = ("XPU", "MPS")
_library = None  # the registrations live as long as it does


@functools.cache
def _scanned():
    return {memory["recur_name"] for memory in memories() if memory["objective"]}


def _operator(rule):
    return "[scan]" if rule in _scanned() else "[recur]"


@functools.cache
def _kernels():
    from lattice.triton import launch

    return launch


def _launcher(rule, q, v, state):
    """The module with the kernels, once it is clear that they can do this; src/ops/inputs.cc has checked the rest."""
    op = _operator(rule)
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
    if any(x.dtype != state.dtype for x in (q, v)):
        raise TypeError(f"{op} the kernel takes one type for all tensors; call lattice.scan or recur")
    return kernels


def _check_bounds(rule, cu_seqlens, T):
    """As CheckSequenceStarts of src/ops/inputs.cc, which the CPU kernels call. Waits for the device."""
    if cu_seqlens is None:
        return
    op, at = _operator(rule), cu_seqlens.tolist()
    if at[0] != 0:
        raise ValueError(f"{op} cu_seqlens must start at 0, got {at[0]}")
    if at[-1] != T:
        raise ValueError(f"{op} cu_seqlens must end at T = {T}, got {at[-1]}")
    for n, (a, b) in enumerate(zip(at, at[1:])):
        if a > b:
            raise ValueError(f"{op} cu_seqlens must never fall, but entry {n + 1} is {b} after {a}")


@functools.lru_cache(maxsize=256)
def _room(rule, normalize, shapes, gates, state, cu_seqlens, dtype):
    """Elements of what is kept, by the operator's own shape function: torch.compile holds us to that."""

    def meta(shape, dtype=dtype):
        return None if shape is None else torch.empty(shape, dtype=dtype, device="meta")

    return torch.ops.lattice._forward(rule, normalize, *map(meta, shapes), list(map(meta, gates)), meta(state),
                                      meta(cu_seqlens, torch.int64), True)[2].numel()


def _shape(x):
    return None if x is None else x.shape


@functools.cache
def _gate_names(rule):
    """The gates of a memory in the order in which the operators carry them."""
    return [gate["name"] for memory in memories() if memory["name"] == rule for gate in memory["gates"]]


def _on(x):
    """The device of x is the current one, as Triton wants it."""
    return torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()


def forward(rule, normalize, q, k, v, gates, state, cu_seqlens, keep):
    kernels = _launcher(rule, q, v, state)
    _check_bounds(rule, cu_seqlens, q.shape[1])
    kept = None
    if keep:
        kept = state.new_empty(_room(rule, normalize, (q.shape, k.shape, v.shape), tuple(map(_shape, gates)), state.shape,
                                     _shape(cu_seqlens), state.dtype))
    named = kernels.Gates(**dict(zip(_gate_names(rule), gates)))
    with _on(q):
        y, state_out = kernels.forward(rule, normalize, q, k, v, named, state, cu_seqlens, kept)
    return y, state_out, state.new_empty(0) if kept is None else kept


def backward(rule, normalize, q, k, v, gates, state, cu_seqlens, kept, dy, dstate_out):
    kernels = _launcher(rule, q, v, state)
    names = _gate_names(rule)
    named = kernels.Gates(**dict(zip(names, gates)))
    with _on(q):
        dq, dk, dv, dnamed, dstate = kernels.backward(rule, normalize, q, k, v, named, state, cu_seqlens, kept, dy,
                                                      dstate_out)
    # Outputs must not alias each other, the empty ones included.
    dgates = [state.new_empty(0) if d is None else d for d in (getattr(dnamed, name) for name in names)]
    return dq, dk, dv, dstate, dgates


def _refuse(rule, normalize, q, *_):
    raise NotImplementedError(f"{_operator(rule)} there are kernels for the CPU and for CUDA and ROCm GPUs, not for "
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
