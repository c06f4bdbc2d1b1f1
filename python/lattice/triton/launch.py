"""Tensors to kernel launches: shapes, scratch memory, number of warps.

Gates are a Gates tuple here. Every tensor has the state's dtype and device. Not yet run on hardware (docs/gpu.md).
"""

from typing import NamedTuple

import torch
import triton

from lattice.triton.engine import BLOCK, backward_kernel, forward_kernel
from lattice.triton.rules import RULES

EPS = 1e-6
LARGEST = 128  # slots and columns
_SMALLEST = 16


class Gates(NamedTuple):
    gamma: torch.Tensor | None = None
    mu: torch.Tensor | None = None
    lam: torch.Tensor | None = None


def kept_states(B, T, packed):
    """States that are kept of every head: at the ends of blocks but for the last."""
    return T // BLOCK if packed else B * ((T - 1) // BLOCK)


def padded(n):
    """M or D as the kernels hold it."""
    return max(_SMALLEST, triton.next_power_of_2(n))


def constants(rule, normalize, M, D, backward):
    """The constexpr arguments of a kernel."""
    r = RULES[rule]
    common = dict(M=M, D=D, BM=padded(M), BD=padded(D), READ=r.read, COEFFICIENTS=r.coefficients, SLOT_MU=r.slot_mu,
                  TOKEN=normalize == "token", EPS=EPS, BLOCK=BLOCK)
    if not backward:
        return common
    large = padded(M) * padded(D) > 64 * 64
    return dict(common, SLOTS=r.slots, ADJOINT=r.adjoint, NOTES=r.notes, RELOAD=large, STAGES=1 if large else 2)


def options(M, D, shrinks=False):
    """How a kernel is compiled: 32 elements of the state for a thread, 16 where there is a lam; up to 16 warps."""
    elements = 16 if shrinks else 32
    return dict(num_warps=max(1, min(16, padded(M) * padded(D) // (32 * elements))))


def _plain(x):
    return None if x is None else x.contiguous()


def forward(rule, normalize, q, k, v, gates, state, cu_seqlens, kept=None):
    """y and the final state; `kept`, if given, gets kept_states() states of all heads."""
    gates = Gates(*map(_plain, gates))
    q, k, v, state, cu_seqlens = map(_plain, (q, k, v, state, cu_seqlens))
    B, T, H, M = q.shape
    D = v.shape[3]
    y, state_out = torch.empty_like(v), torch.empty_like(state)
    if kept is not None and kept_states(B, T, cu_seqlens is not None) == 0:
        kept = None
    forward_kernel[(state.shape[0] * H,)](q, k, v, *gates, state, cu_seqlens, y, state_out, kept, T, H,
                                          **constants(rule, normalize, M, D, backward=False),
                                          **options(M, D, gates.lam is not None))
    return y, state_out


def backward(rule, normalize, q, k, v, gates, state, cu_seqlens, kept, dy, dstate_out):
    """dq, dk, dv, the gradients of the gates (None where there is none) and that of the state."""
    q, k, v, state, cu_seqlens, dy, dstate_out = map(_plain, (q, k, v, state, cu_seqlens, dy, dstate_out))
    gates = Gates(*map(_plain, gates))
    T, H, M = q.shape[1:]
    D, cells = v.shape[3], state.shape[0] * H
    dq, dk, dv, dstate = map(torch.empty_like, (q, k, v, state))
    dgates = Gates(*(None if gate is None else torch.empty_like(gate) for gate in gates))
    states = state.new_empty(cells, BLOCK, M, D)
    notes = state.new_empty(cells, BLOCK, D + RULES[rule].notes * M)
    backward_kernel[(cells,)](q, k, v, *gates, state, cu_seqlens, kept, dy, dstate_out, dq, dk, dv, *dgates, dstate,
                              states, notes, T, H, **constants(rule, normalize, M, D, backward=True),
                              **options(M, D, gates.lam is not None))
    return dq, dk, dv, dgates, dstate
