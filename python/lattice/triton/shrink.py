"""What lam adds behind the update of a Lattice step: slots are shrunk, then measured and brought back to their length.

    Z' = sign(Z) max(|Z| - t, 0)        token normalisation: S_new,i = Z'_i s_i / sqrt(|Z'_i|^2 + eps^2)

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl

from lattice.triton.tiles import outer, over_columns, scale


@triton.jit
def _soft(Z, threshold):
    out = ()
    for i in tl.static_range(len(Z)):
        size = tl.maximum(tl.abs(Z[i]) - threshold, 0.0)
        out = out + (tl.where(Z[i] < 0, -size, size),)
    return out


@triton.jit
def shrink(Z, threshold, inv, TOKEN: tl.constexpr, EPS: tl.constexpr):
    """S_new; inv is 1/s of the slots before the update."""
    Z = _soft(Z, threshold)
    if TOKEN:
        Z = scale(1.0 / (inv * tl.sqrt(over_columns(Z, Z) + EPS * EPS)), Z)
    return Z


@triton.jit
def _through(G, Z, threshold):
    """The gradient where a number was not shrunk to nothing, and its sum over columns along the signs of Z."""
    out, along = (), tl.zeros_like(Z[0])
    for i in tl.static_range(len(Z)):
        g = tl.where(tl.abs(Z[i]) > threshold, G[i], 0.0)
        out = out + (g,)
        along += tl.where(Z[i] < 0, -g, g)
    return out, tl.sum(along, 1, keep_dims=True)


@triton.jit
def shrink_adjoint(G, Z, threshold, inv, TOKEN: tl.constexpr, EPS: tl.constexpr):
    """From the gradient of S_new to those of Z, of s [BM,1] and of the threshold [1,1]."""
    if TOKEN:
        small = _soft(Z, threshold)
        square = over_columns(small, small) + EPS * EPS
        over = 1.0 / tl.sqrt(square)
        dbeta = over_columns(G, small)
        beta = over / tl.where(inv > 0, inv, 1.0)  # 0 in rows beyond the last slot
        ds = dbeta * over
        G = outer(-(dbeta * beta / square), small, scale(beta, G))
    else:
        ds = tl.zeros_like(inv)
    G, along = _through(G, Z, threshold)
    return G, ds, -tl.sum(along, 0, keep_dims=True)
