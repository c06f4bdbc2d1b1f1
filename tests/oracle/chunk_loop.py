"""The chunk approximations as a loop over tokens in torch, for their gradients; values are those of chunk_ref."""

import torch

from .lattice_ref import EPS


def _lengths(S):
    return (S.square().sum(-1) + EPS**2).sqrt()


def chunk_loop(q, k, v, gamma, state, mu=None, *, method, chunk, objective="dec", normalize="token"):
    """y [B,T,H,D] and the final state; arguments as lattice.scan's. Differentiable by autograd."""
    X, rows = state, []
    for t in range(k.shape[1]):
        if t % chunk == 0:
            if normalize == "chunk" and t > 0:
                X = X * (s / _lengths(X))[..., None]  # noqa: F821  (s is the last chunk's)
            S, s = X, _lengths(X)
            Phi = S / s[..., None]
        h = {"dec": torch.einsum("bhm,bhmd->bhd", k[:, t], Phi) - v[:, t], "sim": -v[:, t], "enc": v[:, t]}[objective]
        a = torch.einsum("bhmd,bhd->bhm", Phi, h)
        ch = (a - k[:, t] if objective == "enc" else k[:, t]) / s
        g = gamma[:, t, :, None]
        m = torch.ones_like(g) if mu is None else mu[:, t, :, None]
        dsq = (ch.square() * (h.square().sum(-1, keepdim=True) - a.square())).clamp_min(0)
        beta = s / (m.square() * s.square() + g.square() * dsq).sqrt() if normalize == "token" else torch.ones_like(s)
        W = g * beta * ch
        R = W * a / s
        gate, frozen = (m * beta, R[..., None] * S) if method == "linear1" else (m * beta + R, 0)
        X = gate[..., None] * X + frozen - W[..., None] * h[..., None, :]
        rows.append(torch.einsum("bhm,bhmd->bhd", q[:, t], X))
    if normalize == "chunk":
        X = X * (s / _lengths(X))[..., None]
    return torch.stack(rows, 1), X
