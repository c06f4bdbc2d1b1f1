"""What lam adds behind the update of a Lattice step: slots are shrunk, then measured and brought back to their length.

    Z' = sign(Z) max(|Z| - t, 0)        token normalisation: S_new,i = Z'_i s_i / sqrt(|Z'_i|^2 + eps^2)

Not yet run on hardware: docs/gpu.md says what was tested instead.
"""

import triton
import triton.language as tl


@triton.jit
def _soft(Z, threshold):
    size = tl.maximum(tl.abs(Z) - threshold, 0.0)
    return tl.where(Z < 0, -size, size)


@triton.jit
def shrink(Z, threshold, inv, TOKEN: tl.constexpr, EPS: tl.constexpr):
    """S_new; inv is 1/s of the slots before the update."""
    Z = _soft(Z, threshold)
    if TOKEN:
        Z = Z * (1.0 / (inv * tl.sqrt(tl.sum(Z * Z, 1, keep_dims=True) + EPS * EPS)))
    return Z


@triton.jit
def shrink_adjoint(G, Z, threshold, inv, TOKEN: tl.constexpr, EPS: tl.constexpr):
    """From the gradient of S_new to those of Z, of s [BM,1] and of the threshold [1,1]."""
    if TOKEN:
        small = _soft(Z, threshold)
        square = tl.sum(small * small, 1, keep_dims=True) + EPS * EPS
        over = 1.0 / tl.sqrt(square)
        dbeta = tl.sum(G * small, 1, keep_dims=True)
        beta = over / tl.where(inv > 0, inv, 1.0)  # 0 in rows beyond the last slot
        ds = dbeta * over
        G = beta * G - (dbeta * beta / square) * small
    else:
        ds = tl.zeros_like(inv)
    G = tl.where(tl.abs(Z) > threshold, G, 0.0)
    along = tl.sum(tl.where(Z < 0, -G, G), 1, keep_dims=True)
    return G, ds, -tl.sum(along, 0, keep_dims=True)
