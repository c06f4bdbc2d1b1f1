"""What mlstm adds to the step: a vector n (one number a slot) and a number c, the stabiliser, beside the matrix.

    c' = max(log sigmoid(f) + c, i)    f' = exp(log sigmoid(f) + c - c')    i' = exp(i - c')    kh = k M^-1/2
    S' = f' S + i' kh v^T    n' = f' n + i' kh    y = q@S' / max(|q.n'|, exp(-c'))

In the engine's form: A = f', B = -i' kh, h = v, and n is one more column of the matrix, for which v is always 1. The
gates i and f come as gamma and mu, k comes scaled. In memory the state is S [M,D], then n [M], then c. n is [BM,1] here,
numbers are [1,1].

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl

from lattice.triton.tiles import over_columns, scale


@triton.jit
def load_beside(state, m, M: tl.constexpr, D: tl.constexpr):
    """n and c of the state of a head."""
    n = tl.load(state + M * D + m, mask=m < M, other=0.0)
    return n, tl.load(state + M * D + M + tl.zeros([1, 1], tl.int32))


@triton.jit
def store_beside(state, m, n, c, M: tl.constexpr, D: tl.constexpr):
    tl.store(state + M * D + m, n, mask=m < M)
    tl.store(state + M * D + M + tl.zeros([1, 1], tl.int32), c)


@triton.jit
def _log_sigmoid(x):
    return tl.minimum(x, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _decayed(f, c):
    return _log_sigmoid(f) + c


@triton.jit
def stabilise(i, f, c):
    return tl.maximum(_decayed(f, c), i)


@triton.jit
def coefficients(k, i, f, notes, TOKEN: tl.constexpr, KEEP: tl.constexpr):
    c = notes[1]
    after = stabilise(i, f, c)
    return tl.exp(_decayed(f, c) - after), -tl.exp(i - after) * k


@triton.jit
def read_out(u, q, n, c):
    """y from u = q@S', of the state n', c' after the step."""
    return scale(1.0 / tl.maximum(tl.abs(tl.sum(q * n, 0, keep_dims=True)), tl.exp(-c)), u)


@triton.jit
def read_out_adjoint(dy, u, q, n, c):
    """From dy to the gradients of u, of q.n' and of c'."""
    qn = tl.sum(q * n, 0, keep_dims=True)
    floor = tl.exp(-c)
    by_n = tl.abs(qn) >= floor
    over = 1.0 / tl.maximum(tl.abs(qn), floor)
    du = scale(over, dy)
    dden = -over_columns(du, u) * over
    return du, tl.where(by_n, tl.where(qn < 0, -dden, dden), 0.0), tl.where(by_n, 0.0, -dden * floor)


@triton.jit
def adjoint(i, f, c, A, B, dA, dB, dc):
    """From dA, dB and dc' to the gradients of k, i, f and c. f' and i' both contain -c'."""
    decayed = _decayed(f, c)
    dlog_forget = tl.sum(dA, 0, keep_dims=True) * A
    dlog_input = tl.sum(dB * B, 0, keep_dims=True)
    dafter = dc - dlog_forget - dlog_input
    from_forget = decayed >= i
    ddecayed = dlog_forget + tl.where(from_forget, dafter, 0.0)
    di = dlog_input + tl.where(from_forget, 0.0, dafter)
    return -tl.exp(i - stabilise(i, f, c)) * dB, di, ddecayed / (1.0 + tl.exp(f)), ddecayed
