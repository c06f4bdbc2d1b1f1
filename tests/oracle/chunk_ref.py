"""The two chunk approximations of the recurrence, as plain loops over the tokens of a chunk.

Everything that depends on the state (norms, errors, scales) is frozen at the state S' the chunk starts from.
Shapes as in lattice_ref. For chunk = 1 both forms are the exact step.
"""

import numpy as np

from .lattice_ref import EPS, error_and_weights, slot_norms


def frozen_terms(S, K, V, gamma, mu, *, objective, normalize):
    """H [B,c,H,D] and G, W, R [B,c,H,M] of one chunk; G is linear1's gate, linear2's is G + R."""
    s, Phi = slot_norms(S)
    s_, Phi_ = s[:, None], Phi[:, None]
    H, C = error_and_weights(objective, Phi_, K, V)
    Hh = np.einsum("bthd,bhmd->bthm", H, Phi) / s_
    Kh = C / s_
    g, m = gamma[..., None], mu[..., None]
    dsq = np.maximum(0.0, Kh**2 * (H * H).sum(-1)[..., None] - s_**2 * (Hh * Kh) ** 2)
    beta = s_ / np.sqrt(m**2 * s_**2 + g**2 * dsq) if normalize == "token" else np.ones_like(Kh)
    W = g * beta * Kh
    return H, m * beta, W, Hh * W


def chunk_forward(S0, K, V, Q, gamma, mu=None, *, method, chunk, objective="dec", normalize="token", on_state=None):
    """Y and the final state. on_state, if given, is called with the state after every token."""
    mu = np.ones_like(gamma) if mu is None else mu
    S, Y = S0, []
    for start in range(0, K.shape[1], chunk):
        part = slice(start, start + chunk)
        H, G, W, R = frozen_terms(S, K[:, part], V[:, part], gamma[:, part], mu[:, part], objective=objective,
                                  normalize=normalize)
        X = S
        for t in range(H.shape[1]):
            write = W[:, t][..., None] * H[:, t][..., None, :]
            if method == "linear1":
                X = G[:, t][..., None] * X + R[:, t][..., None] * S - write
            elif method == "linear2":
                X = (G[:, t] + R[:, t])[..., None] * X - write
            else:
                raise ValueError(f"method is {method!r}; expected linear1 or linear2")
            Y.append(np.einsum("bhm,bhmd->bhd", Q[:, start + t], X))
            if on_state is not None:
                on_state(X)
        if normalize == "chunk":
            s, _ = slot_norms(S)
            X = X * (s / np.sqrt((X * X).sum(-1) + EPS**2))[..., None]
        S = X
    return np.stack(Y, axis=1), S
