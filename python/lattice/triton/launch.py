"""Tensors to kernel launches: shapes, scratch memory, layout of the state, number of warps.

Gates are a Gates tuple here. The state is float32 or float64; other tensors have its type, or bfloat16, and so have the
gradients of each. Not yet run on hardware (docs/gpu.md).
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


class Layout(NamedTuple):
    """How a kernel holds a state: in tiles of so many columns (tiles.py), over so many warps."""

    columns: int
    warps: int


def checkpoint_rows(B, T, packed):
    """Checkpoints of every head: at the ends of blocks but for the last. The rule of src/ops/saved_sizes.h."""
    return T // BLOCK if packed else B * ((T - 1) // BLOCK)


def checkpoints(q, state, cu_seqlens):
    """Elements of the checkpoints of a call."""
    B, T, H = q.shape[:3]
    return checkpoint_rows(B, T, cu_seqlens is not None) * H * state[0, 0].numel()


def padded(n):
    """M or D as the kernels hold it."""
    return max(_SMALLEST, triton.next_power_of_2(n))


def layout(M, D, shrinks=False, backward=False):
    """32 elements of the state for a thread, 16 where there is a lam; up to 16 warps. Tiles of half the columns: then a
    thread of a 64 x 64 state has 4 slots x 8 columns, and sums over both cross few threads (docs/gpu.md).

    On the way back from 128 x 128 there are 8 warps, whose threads may have 255 registers each: of the 128 that 16 warps
    leave, state and gradient take half, and the rest does not suffice. Tiles are a quarter of the columns then.
    """
    BM, BD = padded(M), padded(D)
    warps = max(1, min(16, BM * BD // (32 * (16 if shrinks else 32))))
    if backward and BM * BD == LARGEST**2:
        return Layout(BD // 4, 8)
    return Layout(max(_SMALLEST, BD // 2), warps)


def constants(rule, normalize, M, D, backward, how):
    """The constexpr arguments of a kernel."""
    r = RULES[rule]
    common = dict(M=M, D=D, BM=padded(M), BW=how.columns, TILES=padded(D) // how.columns, SIZE=M * D + (M + 1) * r.beside,
                  READ=r.read, COEFFICIENTS=r.coefficients, SLOT_MU=r.slot_mu, TOKEN=normalize == "token", BESIDE=r.beside,
                  SCALE=M**-0.5 if r.beside else 1.0, EPS=EPS, BLOCK=BLOCK)
    if not backward:
        return common
    large = padded(M) * padded(D) > 64 * 64
    return dict(common, SLOTS=r.slots, ADJOINT=r.adjoint, NOTES=r.notes, RELOAD=large, STAGES=1 if large else 2)


def _plain(x):
    return None if x is None else x.contiguous()


def forward(rule, normalize, q, k, v, gates, state, cu_seqlens, saved):
    """y and the final state; `saved` gets the checkpoints, if it has room for them."""
    gates = Gates(*map(_plain, gates))
    q, k, v, state, cu_seqlens = map(_plain, (q, k, v, state, cu_seqlens))
    T, H, M = q.shape[1:]
    D = v.shape[3]
    y, state_out = torch.empty_like(v), torch.empty_like(state)
    how = layout(M, D, gates.lam is not None)
    forward_kernel[(state.shape[0] * H,)](q, k, v, *gates, state, cu_seqlens, y, state_out,
                                          saved if saved.numel() else None, T, H,
                                          **constants(rule, normalize, M, D, False, how), num_warps=how.warps)
    return y, state_out


def backward(rule, normalize, q, k, v, gates, state, cu_seqlens, saved, dy, dstate_out):
    """dq, dk, dv, the gradients of the gates (None where there is none) and that of the state."""
    q, k, v, state, cu_seqlens, dy, dstate_out = map(_plain, (q, k, v, state, cu_seqlens, dy, dstate_out))
    gates = Gates(*map(_plain, gates))
    T, H, M = q.shape[1:]
    D, cells = v.shape[3], state.shape[0] * H
    dq, dk, dv, dstate = map(torch.empty_like, (q, k, v, state))
    dgates = Gates(*(None if gate is None else torch.empty_like(gate) for gate in gates))
    states = state.new_empty(cells, BLOCK, M, D)
    notes = state.new_empty(cells, BLOCK, D + RULES[rule].notes * M)
    how = layout(M, D, gates.lam is not None, backward=True)
    backward_kernel[(cells,)](q, k, v, *gates, state, cu_seqlens, saved, dy, dstate_out, dq, dk, dv, *dgates, dstate,
                              states, notes, T, H, **constants(rule, normalize, M, D, True, how), num_warps=how.warps)
    return dq, dk, dv, dgates, dstate
