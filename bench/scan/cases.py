"""The inputs every subject gets, as NumPy arrays made from a seed. B batch, T time, H heads, M slots, D head width.

What a layer sees once training has begun: q and k of unit length, gates from sigmoids, unit slots.
"""

import numpy as np

NAMES = ("q", "k", "v", "gamma", "mu", "state")


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def inputs(B, T, H, M, D, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    made = dict(q=_unit(normal(B, T, H, M)), k=_unit(normal(B, T, H, M)), v=normal(B, T, H, D),
                gamma=sigmoid(normal(B, T, H)), mu=sigmoid(normal(B, T, H) + 2), state=_unit(normal(B, H, M, D)))
    return {name: np.ascontiguousarray(x, dtype=dtype) for name, x in made.items()}


def cotangents(B, T, H, M, D, seed=1, dtype=np.float32):
    """The gradients of a loss by y and by the final state."""
    rng = np.random.default_rng(seed)
    shapes = dict(dy=(B, T, H, D), dstate=(B, H, M, D))
    return {name: rng.standard_normal(shape, dtype=np.float32).astype(dtype) for name, shape in shapes.items()}
