"""Seeded inputs for the tests: what a layer sees after training has begun, in NumPy float64."""

import numpy as np


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def one_head(L, M, D, seed=0):
    """S [M,D] with unit slots, K and Q [L,M] of unit length, V [L,D], gamma and mu [L] in (0,1)."""
    rng = np.random.default_rng(seed)
    K, Q, V = (rng.normal(size=(L, n)) for n in (M, M, D))
    S = unit(rng.normal(size=(M, D)))
    return S, unit(K), V, unit(Q), sigmoid(rng.normal(size=L)), sigmoid(rng.normal(size=L) + 2.0)


def batched(S, *sequences):
    """One head as the batch of one head that the references take."""
    return (S[None, None], *(x[None, :, None] for x in sequences))
