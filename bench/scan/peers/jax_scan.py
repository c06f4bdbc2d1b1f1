"""The paper's algorithm in JAX: one head, jitted and mapped over batch and heads, as its authors run it.

chunk 1 is the exact recurrence; a larger chunk is the linear2 approximation with the corrected beta. Written from the
formulas of docs/recurrence.md, with the same evaluation of gate products as torch_chunk.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

EPS = 1e-6
NAMES = ("q", "k", "v", "gamma", "mu")


def frozen(S, k, v, gamma, mu):
    """G, W [C,M] and H [C,D] of a chunk k [C,M], v [C,D], gamma, mu [C] that starts from S [M,D]."""
    s = jnp.sqrt((S * S).sum(-1) + EPS**2)
    Phi = S / s[:, None]
    H = k @ Phi - v
    a = H @ Phi.T
    ch = k / s
    gamma, mu = gamma[:, None], mu[:, None]
    tail = jnp.maximum((H * H).sum(-1, keepdims=True) - a * a, 0)
    beta = s / jnp.sqrt((mu * s) ** 2 + (gamma * ch) ** 2 * tail)
    W = beta * gamma * ch
    return beta * mu + W * a / s, W, H


def token_step(S, x):
    """The exact step: what the token writes, Delta, is orthogonal to every slot, so lengths add as squares."""
    q, k, v, gamma, mu = x
    s = jnp.sqrt((S * S).sum(-1) + EPS**2)
    Phi = S / s[:, None]
    h = k @ Phi - v
    Delta = (k / s)[:, None] * (h - (Phi @ h)[:, None] * Phi)
    beta = s / jnp.sqrt((mu * s) ** 2 + ((gamma * Delta) ** 2).sum(-1))
    S = beta[:, None] * (mu * S - gamma * Delta)
    return S, q @ S


def joined(q, w, G):
    """Scores [C,C], the gate products from the chunk's start and those to its end [C,M]; C a power of two."""
    C = G.shape[0]
    scores, prefix, suffix = (q * w).sum(-1)[:, None, None], G, jnp.ones_like(G)
    block = 1
    while block < C:
        halves = [x.reshape(-1, 2, block, x.shape[-1]) for x in (q, w, prefix, suffix)]
        (_, q_right), (w_left, _), (P_left, P_right), (X_left, X_right) = ((x[:, 0], x[:, 1]) for x in halves)
        left, right = scores[0::2], scores[1::2]
        cross = jnp.einsum("nim,njm->nij", q_right * P_right, w_left * X_left)
        scores = jnp.concatenate([jnp.concatenate([left, jnp.zeros_like(left)], -1),
                                  jnp.concatenate([cross, right], -1)], -2)
        prefix = jnp.concatenate([P_left, P_right * P_left[:, -1:]], 1).reshape(G.shape)
        suffix = jnp.concatenate([X_left * P_right[:, -1:], X_right], 1).reshape(G.shape)
        block *= 2
    return scores[0], prefix, suffix


def chunk_step(S, x):
    q, k, v, gamma, mu = x
    G, W, H = frozen(S, k, v, gamma, mu)
    scores, prefix, suffix = joined(q, W, G)
    return prefix[-1][:, None] * S - (W * suffix).T @ H, (q * prefix) @ S - scores @ H


def one_head(chunk, state, *sequences):
    """sequences [T,...]; T is whole chunks and a shorter rest, padded with tokens that change nothing."""
    if chunk == 1:
        state, y = lax.scan(token_step, state, sequences)
        return y, state
    T = sequences[0].shape[0]
    missing = -T % chunk
    fills = (0, 0, 0, 0, 1)
    padded = [jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1), constant_values=fill)
              for x, fill in zip(sequences, fills)]
    parts = tuple(x.reshape(-1, chunk, *x.shape[1:]) for x in padded)
    state, y = lax.scan(chunk_step, state, parts)
    return y.reshape(-1, y.shape[-1])[:T], state


class Run:
    def __init__(self, x, d, *, threads, chunk):
        if len(os.sched_getaffinity(0)) != threads:
            raise RuntimeError(f"JAX uses every CPU it is given, {len(os.sched_getaffinity(0))}; asked were {threads}")
        self.names = list(x)
        self.x = [jnp.asarray(x[name]) for name in self.names]
        self.cotangents = tuple(jnp.asarray(d[name]) for name in ("dy", "dstate"))
        axes = (0,) + (1,) * len(NAMES)
        heads = jax.vmap(lambda state, *seq: one_head(chunk, state, *seq), in_axes=axes, out_axes=(1, 0))
        batch = jax.vmap(heads)
        order = [self.names.index(name) for name in ("state", *NAMES)]

        def scan(*arrays):
            return batch(*(arrays[i] for i in order))

        def both(arrays, cotangents):
            outputs, pull = jax.vjp(scan, *arrays)
            return outputs, pull(cotangents)

        self.scan, self.both = jax.jit(scan), jax.jit(both)

    def forward(self):
        return jax.block_until_ready(self.scan(*self.x))

    def forward_backward(self):
        return jax.block_until_ready(self.both(tuple(self.x), self.cotangents))

    def outputs(self):
        return [np.asarray(out) for out in self.forward()]

    def gradients(self):
        return {name: np.asarray(grad) for name, grad in zip(self.names, self.forward_backward()[1])}
