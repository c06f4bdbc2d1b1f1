"""Machine code of NVIDIA's GPUs: what it needs, its loops, and a model on paper of the time they take."""

import collections
import re
import subprocess
import tempfile
from pathlib import Path

import triton

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


def _ask(cubin, tool, *arguments):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([TOOLS / tool, *arguments, file.name], capture_output=True, text=True, check=True).stdout


def resources(cubin):
    """Registers of a thread, its bytes of stack, and instructions that spill."""
    usage, code = _ask(cubin, "cuobjdump", "-res-usage"), _ask(cubin, "nvdisasm", "-c")
    number = lambda key: int(re.search(rf"{key}:(\d+)", usage)[1])  # noqa: E731
    return dict(registers=number("REG"), stack=number("STACK"), spills=len(re.findall(r"\b(?:STL|LDL)\b", code)))


def loops(cubin):
    """The innermost loops over tokens: lists of SASS instructions as (name, the rest, control bits).

    The control bits say how many cycles the next instruction waits and which scoreboards this one sets and awaits.
    """
    text = _ask(cubin, "nvdisasm", "-c", "-hex")
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
