"""The memories that have GPU kernels: what each adds to the engine's step. Not yet run on hardware (docs/gpu.md)."""

from dataclasses import dataclass
from typing import Any

from lattice.triton.rules import lattice, linear


@dataclass(frozen=True)
class Rule:
    """The three functions of engine.py, how many vectors of slots `read` leaves for the adjoint, and mu's shape."""

    read: Any
    coefficients: Any
    adjoint: Any
    notes: int = 0
    slot_mu: bool = False  # mu is [B,T,H,M]


def _lattice(read, adjoint):
    return Rule(read, lattice.coefficients, adjoint, lattice.NOTES)


RULES = {
    "lattice_dec": _lattice(lattice.read_dec, lattice.adjoint_dec),
    "lattice_enc": _lattice(lattice.read_enc, lattice.adjoint_enc),
    "lattice_sim": _lattice(lattice.read_sim, lattice.adjoint_sim),
    "linear_attention": Rule(linear.read_value, linear.write, linear.adjoint_value),
    "mamba2": Rule(linear.read_value, linear.write, linear.adjoint_value),
    "gla": Rule(linear.read_value, linear.write, linear.adjoint_value, slot_mu=True),
    "deltanet": Rule(linear.read_error, linear.correct, linear.adjoint_error),
    "gated_deltanet": Rule(linear.read_faded_error, linear.correct, linear.adjoint_faded_error),
    "rwkv7": Rule(linear.read_error, linear.correct, linear.adjoint_error, slot_mu=True),
    "ttt": Rule(linear.read_projected, linear.correct, linear.adjoint_projected),
}
