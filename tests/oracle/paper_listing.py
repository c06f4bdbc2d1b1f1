"""The program printed in the paper's appendix, re-expressed in NumPy with its own formulas, errors included.

It differs from lattice_ref in two choices of its author (docs/errata.md): slot norms are |S| + 1e-6, and inside a
chunk the norm of the decayed slot is taken as eta |s| where mu |s| is meant. `corrected=True` repairs the second.
One head: S [M,D], K, Q [L,M], V [L,D], eta and mu [L]. Only the dec and sim objectives are printed.
"""

import numpy as np


def _directions(S):
    norm = np.linalg.norm(S, axis=-1) + 1e-6
    return norm, S / norm[:, None]


def _written(mode, Phi, K, V):
    if mode == "dec":
        return K @ Phi - V
    if mode == "sim":
        return -V
    raise ValueError(f"mode is {mode!r}; the listing has dec and sim only")


def step(S, k, v, q, eta, mu, mode="dec"):
    """The printed one-token update: the new state and its read-out."""
    norm, Phi = _directions(S)
    h = _written(mode, Phi, k, v)
    along = (Phi @ h) / norm
    write = k / norm
    Delta = np.outer(write, h) - (along * write)[:, None] * S
    beta = norm / np.sqrt(((mu * S) ** 2 + (eta * Delta) ** 2).sum(-1))
    S_new = beta[:, None] * (mu * S - eta * Delta)
    return S_new, q @ S_new


def chunk_scale(S, H, K, eta, mu, *, corrected):
    """The printed beta [C,M] of a chunk that starts from S."""
    norm, Phi = _directions(S)
    along, write = (H @ Phi.T) / norm, K / norm
    dsq = np.maximum(0.0, write**2 * (H * H).sum(-1)[:, None] - norm**2 * (along * write) ** 2)
    kept = mu if corrected else eta
    return norm / np.sqrt(kept[:, None] ** 2 * norm**2 + eta[:, None] ** 2 * dsq)


def chunk(S, K, V, Q, eta, mu, mode="dec", *, corrected):
    """The printed chunk update; the gated linear attention it calls but does not print is written as a loop."""
    norm, Phi = _directions(S)
    H = _written(mode, Phi, K, V)
    along, write = (H @ Phi.T) / norm, K / norm
    beta = chunk_scale(S, H, K, eta, mu, corrected=corrected)
    gate = beta * (mu[:, None] + eta[:, None] * along * write)
    keys = -beta * eta[:, None] * write
    Y = np.empty_like(V)
    for t in range(len(K)):
        S = gate[t][:, None] * S + np.outer(keys[t], H[t])
        Y[t] = Q[t] @ S
    return S, Y


def run(S, K, V, Q, eta, mu, mode="dec", chunk_size=1, *, corrected=False):
    """Final state and Y. As printed, chunk_size must divide the length."""
    L = len(K)
    if L % chunk_size:
        raise ValueError(f"chunk_size is {chunk_size}; it must divide the length {L}")
    Y = np.empty_like(V)
    for b in range(0, L, chunk_size):
        part = slice(b, b + chunk_size)
        if chunk_size == 1:
            S, Y[b] = step(S, K[b], V[b], Q[b], eta[b], mu[b], mode)
        else:
            S, Y[part] = chunk(S, K[part], V[part], Q[part], eta[part], mu[part], mode, corrected=corrected)
    return S, Y
