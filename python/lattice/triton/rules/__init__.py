"""The memories that have GPU kernels: what each adds to the engine's step. Not yet run on hardware (docs/gpu.md)."""

from dataclasses import dataclass
from typing import Any

from lattice.triton import beside
from lattice.triton.rules import lattice, linear


@dataclass(frozen=True)
class Rule:
    """The functions of engine.py, how many vectors of slots `read` leaves for the adjoint, and the shape of mu."""

    read: Any
    coefficients: Any
    slots: Any
    adjoint: Any
    notes: int = 0
    slot_mu: bool = False  # mu is [B,T,H,M]
    beside: bool = False  # the state has n [M] and c beside its matrix (beside.py), and keys are scaled by M^-1/2


def _lattice(read, slots, adjoint):
    return Rule(read, lattice.coefficients, slots, adjoint, lattice.NOTES)


def _linear(read, coefficients, adjoint, slot_mu=False):
    return Rule(read, coefficients, linear.slots, adjoint, slot_mu=slot_mu)


RULES = {
    "lattice_dec": _lattice(lattice.read_dec, lattice.slots, lattice.adjoint_dec),
    "lattice_enc": _lattice(lattice.read_enc, lattice.slots_enc, lattice.adjoint_enc),
    "lattice_sim": _lattice(lattice.read_sim, lattice.slots, lattice.adjoint_sim),
    "linear_attention": _linear(linear.read_value, linear.write, linear.adjoint_value),
    "mamba2": _linear(linear.read_value, linear.write, linear.adjoint_value),
    "gla": _linear(linear.read_value, linear.write, linear.adjoint_value, slot_mu=True),
    "deltanet": _linear(linear.read_error, linear.correct, linear.adjoint_error),
    "gated_deltanet": _linear(linear.read_faded_error, linear.correct, linear.adjoint_faded_error),
    "rwkv7": _linear(linear.read_error, linear.correct, linear.adjoint_error, slot_mu=True),
    "mlstm": Rule(None, beside.coefficients, None, None, notes=2, beside=True),
    "ttt": _linear(linear.read_projected, linear.correct, linear.adjoint_projected),
}
