"""Compiles the Triton kernels for GPUs that are not there: the code, what it needs, and the loops of its machine code.

As a program it prints the model on paper of docs/gpu.md: `PYTHONPATH=python python tests/triton_compile.py`.
"""

import collections
import re
import subprocess
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lattice.triton import engine, launch

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
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
    how = how or launch.layout(M, D, "lam" in gates)
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


def _run(tool, *arguments):
    return subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True, check=True).stdout


def resources(built, target):
    """Registers of a thread, bytes of stack and shared memory, and instructions that spill."""
    if not target.startswith("sm_"):
        text = built.asm["amdgcn"]
        number = lambda key: int(re.search(rf"\.{key}:\s*(\d+)", text)[1])  # noqa: E731
        return dict(registers=number("vgpr_count"), stack=number("private_segment_fixed_size"),
                    spills=number("vgpr_spill_count"), shared=number("group_segment_fixed_size"))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        usage, code = _run("cuobjdump", "-res-usage", file.name), _run("nvdisasm", "-c", file.name)
    number = lambda key: int(re.search(rf"{key}:(\d+)", usage)[1])  # noqa: E731
    return dict(registers=number("REG"), stack=number("STACK"), shared=built.metadata.shared,
                spills=len(re.findall(r"\b(?:STL|LDL)\b", code)))


def loops(built):
    """The innermost loops over tokens: lists of SASS instructions as (name, the rest, control bits).

    The control bits say how many cycles the next instruction waits and which scoreboards this one sets and awaits.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        text = _run("nvdisasm", "-c", "-hex", file.name)
    code, labels, pending = [], {}, None
    for line in text.split("\n"):
        if label := re.match(r"\s*\.(L_x_\d+):", line):
            labels[label[1]] = len(code)
        elif low := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?)/\* 0x[0-9a-f]{16} \*/", line):
            pending = low.groups()
        elif pending and (high := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", line)):
            code.append((*pending, int(high[1], 16) >> 41))
            pending = None
    found = []
    for i, (name, rest, _) in enumerate(code):
        to = re.search(r"`\(\.(L_x_\d+)\)", rest)
        if name.startswith("BRA") and to and labels.get(to[1], i) < i:
            found.append((labels[to[1]], i + 1))
    inner = [x for x in found if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in found)]
    return [code[a:b] for a, b in inner if b - a > 20]


_KINDS = (("float", "F(FMA|MUL|ADD)"), ("shuffle", "SHFL"), ("special", "MUFU"), ("shared", "(LDS|STS|LDSM|STSM)"),
          ("global", "(LDG|STG)"), ("barrier", "BAR"), ("other", ""))


def count(loop):
    """Instructions of a loop by kind."""
    return collections.Counter(next(kind for kind, pattern in _KINDS if re.match(pattern, name))
                               for name, _, _ in loop)


_LATENCY = (("SHFL", 24), ("LDS", 30), ("STS", 25), ("MUFU", 22), ("LDG", 600), ("STG", 40), ("", 25))
_BARRIER = 30


def cycles(loop, rounds=3):
    """Cycles of one round of a loop by one warp alone on its scheduler: a model on paper. Instructions go in order, with
    the stalls and scoreboards that ptxas wrote into them and textbook latencies for what they wait for."""
    now, ready = 0, [0] * 6
    for _ in range(rounds):
        begin = now
        for name, _, control in loop:
            stall, write, read, wait = control & 15, control >> 5 & 7, control >> 8 & 7, control >> 11 & 63
            now = max([now] + [ready[i] for i in range(6) if wait >> i & 1])
            now += _BARRIER if name.startswith("BAR") else 0
            if write != 7:
                latency = next(n for pattern, n in _LATENCY if re.match(pattern, name))
                ready[write] = max(ready[write], now + latency)
            if read != 7:
                ready[read] = max(ready[read], now + 20)
            now += max(1, stall)
    return now - begin


# GPU: target, multiprocessors, clock in GHz, registers of a multiprocessor, memory in TB/s.
CARDS = {"A100": ("sm_80", 108, 1.41, 65536, 2.0), "H100": ("sm_90", 132, 1.755, 65536, 3.35),
         "B200": ("sm_100", 148, 1.85, 65536, 8.0)}
_SCHEDULERS = 4


def model(card, M=64, D=64):
    """What limits each loop over tokens of lattice_dec on a card, on paper: rows of (name, figures)."""
    target, processors, clock, registers, bandwidth = CARDS[card]
    rows = []
    for which, names in (("forward", ["forward"]), ("backward", ["recompute", "adjoint"])):
        warps = launch.layout(M, D).warps
        built = build(which, target, M=M, D=D)
        needs = resources(built, target)
        blocks = registers // (-(-needs["registers"] // 8) * 8 * 32 * warps)
        # Bytes to and from memory: what a token brings, and a state stored and loaded once in the backward pass.
        traffic = {"forward": 4 * (2 * M + 2 * D) + 4 * M * D / launch.BLOCK, "recompute": 4 * (2 * M + 3 * D + M * D),
                   "adjoint": 4 * (3 * M + 3 * D + M * D)}
        for name, loop in zip(names, loops(built), strict=True):
            issue, latency = warps * len(loop) / _SCHEDULERS, cycles(loop)
            rates = dict(issue=1 / issue, latency=blocks / latency)
            rates = {limit: processors * clock * 1e3 * rate for limit, rate in rates.items()}
            rates["memory"] = bandwidth * 1e6 / traffic[name]
            rows.append((name, dict(registers=needs["registers"], blocks=blocks, instructions=len(loop), cycles=latency,
                                    kinds=dict(count(loop)), rates=rates)))
    return rows


def main():
    for card in CARDS:
        rows = model(card)
        slowest = {name: min(figures["rates"].values()) for name, figures in rows}
        for name, f in rows:
            print(f"{card} {name}: {f['registers']} registers, {f['blocks']} blocks, {f['instructions']} instructions and "
                  f"{f['cycles']} cycles a token; M head-tokens/s by " +
                  ", ".join(f"{limit} {rate:.0f}" for limit, rate in f["rates"].items()))
            print("    " + ", ".join(f"{kind} {n}" for kind, n in f["kinds"].items()))
        print(f"{card}: {slowest['forward']:.0f} forward, {1 / sum(1 / rate for rate in slowest.values()):.0f} "
              "forward+backward, M head-tokens/s")


if __name__ == "__main__":
    main()
