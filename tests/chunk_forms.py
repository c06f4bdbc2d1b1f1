"""What the tests of the chunk forms share: the matrix form by itself, and comparisons."""

import torch

METHODS = ("linear1", "linear2")
NORMALIZE = ("token", "chunk", "none")


def matrix_scan(q, k, v, gamma, mu=None, state=None, *, objective="dec", normalize="token", method="linear2", chunk=64,
                sweeps=1, tolerance=None, cu_seqlens=None):
    """The form made of ATen's matrix products, which other devices run, differentiated by plain autograd."""
    return torch.ops.lattice._chunk_matrix(objective, normalize, method, chunk, sweeps, tolerance, q, k, v, gamma, mu,
                                           state, cu_seqlens)


def assert_close(got, want, tolerance, what=""):
    """(y, state, gradients) against the same, relative to the largest entry of each."""
    pairs = dict(y=(got[0], want[0]), state_out=(got[1], want[1]))
    pairs.update({f"d{name}": (got[2][name], want[2][name]) for name in want[2]})
    for name, (actual, expected) in pairs.items():
        assert torch.isfinite(actual).all(), f"{what} {name} is not finite"
        error = (actual.double() - expected.double()).abs().max() / expected.double().abs().max().clamp_min(1e-30)
        assert error < tolerance, f"{what} {name} is off by {error:.2e}, allowed {tolerance:.0e}"
