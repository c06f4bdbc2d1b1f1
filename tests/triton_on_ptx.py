"""One call of a recurrence, forward and backward, as the compiled PTX computes it on the machine of tests/ptx."""

import numpy as np

import ptx
from lattice.triton import launch
from lattice.triton.rules import RULES
from triton_compile import KERNELS, build

GATES = ("gamma", "mu", "lam")
SCRATCH = ("saved", "states", "notes_at")


def buffers(which, rule, given):
    """What the kernel writes, filled with NaN: {argument: array}."""
    (B, T, H, M), D = given["q"].shape, given["v"].shape[3]
    N = given["state"].shape[0]
    dtype = given["state"].dtype
    new = lambda *shape: np.full(shape, np.nan, dtype)  # noqa: E731
    if which == "forward":
        saved = launch.checkpoint_rows(B, T, "cu" in given) * given["state"][0].size
        return dict(y=np.full_like(given["v"], _nan(given["v"])), state_out=new(*given["state"].shape),
                    **(dict(saved=new(saved)) if saved else {}))
    grads = {"d" + name: np.full_like(given[name], _nan(given[name])) for name in ("q", "k", "v", "state", *GATES) if name in given}
    notes = D + RULES[rule].notes * M
    return dict(grads, states=new(N * H, launch.BLOCK, M, D), notes_at=new(N * H, launch.BLOCK, notes))


def _nan(x):
    """What is no number in the array's type: bfloat16 is carried as its bits."""
    return np.nan if x.dtype != np.uint16 else 0x7FC0


def compiled(which, target, rule, given, normalize="token", how=None):
    dtype = "fp64" if given["state"].dtype == np.float64 else "fp32"
    missing = {"saved", "dstate_out"} - set(given) - set(buffers(which, rule, given))
    return build(which, target, rule, given["q"].shape[3], given["v"].shape[3], normalize=normalize, dtype=dtype,
                 gates=[name for name in GATES if name in given], packed="cu" in given, how=how,
                 inputs="bf16" if given["q"].dtype == np.uint16 else None, more_absent=missing)


def arguments_of(which, given, out):
    """A kernel's arguments as ptx.launch wants them; `out` has what it writes."""
    _, T, H, _ = given["q"].shape
    values = dict(T=T, H=H)
    arguments = []
    for name in KERNELS[which].arg_names:
        if name in out:
            arguments.append((name, out[name], False))
        elif name in given:
            arguments.append((name, given[name].copy(), True))
        elif name in values:
            arguments.append(values[name])
    return arguments


def run(which, built, rule, given, text=None):
    """What the kernel wrote, and the number of instructions a thread executed. `text` stands in for the kernel's PTX."""
    out = buffers(which, rule, given)
    memory, executed = ptx.launch(text or built.asm["ptx"], KERNELS[which].__name__, _cells(given),
                                  arguments_of(which, given, out), built.metadata.shared)
    for buffer in memory.buffers:
        if buffer.shadow.name in out and buffer.shadow.name not in SCRATCH and not buffer.shadow.written.all():
            raise ptx.Fault(f"{buffer.shadow.name} was not written completely")
    return out, executed


def _cells(given):
    return given["state"].shape[0] * given["q"].shape[2]


def translated(which, built):
    """The compiled kernel as a C program (ptx/translate.py)."""
    return ptx.Program(built.asm["ptx"], KERNELS[which].__name__, built.metadata.shared)


def run_translated(program, which, rule, given, **errors):
    """What the kernel wrote, without the machine's checks. `errors` says how approximate instructions err."""
    out = buffers(which, rule, given)
    program.run(_cells(given), arguments_of(which, given, out), **errors)
    return out


def both(target, rule, given, dy, dstate_out, normalize="token", how=None):
    """Outputs and gradients of one call: {name: array}."""
    first, _ = run("forward", compiled("forward", target, rule, given, normalize, how), rule, given)
    more = dict(given, dy=dy, dstate_out=dstate_out, saved=first.get("saved", np.zeros(0, dstate_out.dtype)))
    second, _ = run("backward", compiled("backward", target, rule, more, normalize, how), rule, more)
    return {**first, **second}
