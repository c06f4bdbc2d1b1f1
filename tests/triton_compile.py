"""Compiles the Triton kernels for GPUs that are not there: the code, and what it needs."""

import re

import sass
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lattice.triton import engine, launch

KERNELS = {"forward": engine.forward_kernel, "backward": engine.backward_kernel}
_NUMBERS = ("T", "H")
_STATES = ("state", "state_out", "saved", "dstate", "dstate_out", "states", "notes_at")


def absent(gates, packed=False):
    """The arguments that are None in a call with these gates."""
    names = {name for gate in ("gamma", "mu", "lam") if gate not in gates for name in (gate, "d" + gate)}
    return names if packed else names | {"cu"}


def target_of(name):
    return GPUTarget("cuda", int(name[3:]), 32) if name.startswith("sm_") else GPUTarget("hip", name, 64)


def build(which, target, rule="lattice_dec", M=64, D=64, *, gates=("gamma", "mu"), normalize="token", packed=False,
          dtype="fp32", inputs=None, how=None, more_absent=(), **other):
    """A kernel as launch.py would ask for it, with inputs of another type than the state's `dtype`, another layout or
    other constants where told."""
    kernel = KERNELS[which]
    how = how or launch.layout(M, D, "lam" in gates, which == "backward")
    constants = launch.constants(rule, normalize, M, D, which == "backward", how) | other
    names = kernel.arg_names
    for name in (*absent(gates, packed), *more_absent):
        if name in names:
            constants[name] = None
    signature = {name: "constexpr" if name in constants else "*i64" if name == "cu" else
                 "i32" if name in _NUMBERS else "*" + (dtype if name in _STATES else inputs or dtype) for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if signature[name].startswith("*")}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned)
    return triton.compile(source, target=target_of(target), options=dict(num_warps=how.warps))


def resources(built, target):
    """Registers of a thread, bytes of stack and shared memory, and instructions that spill."""
    if not target.startswith("sm_"):
        text = built.asm["amdgcn"]
        number = lambda key: int(re.search(rf"\.{key}:\s*(\d+)", text)[1])  # noqa: E731
        return dict(registers=number("vgpr_count"), stack=number("private_segment_fixed_size"),
                    spills=number("vgpr_spill_count"), shared=number("group_segment_fixed_size"))
    return dict(sass.resources(built.asm["cubin"]), shared=built.metadata.shared)
