"""Do the lengths of slots drift on a GPU? The compiled PTX over 2^20 tokens of one head, in float32, as a C program
(ptx/translate.py); the CPU's kernels on the same tokens beside it.

    PYTHONPATH=python python tests/triton_drift.py --out results/gpu/drift.json

Token normalisation holds the length of every slot; what a run reports is how far the lengths are off at the end, and on
the way. The approximate instruction rsqrt errs at random within its documented bound of two units in the last place, or
(`bias`) by the whole bound always the same way, the worst that a GPU may do. Cases that the file has already are not run
again.
"""

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import triton

import triton_on_ptx as on_ptx
from lattice.triton.rules import lattice as rules
from triton_compile import build

RULE = "lattice_dec"
SEGMENT = 1 << 14  # tokens of one launch: the state is carried on, and a split changes no bit
RANDOM = 2.0  # no bias


@triton.jit
def plain_coefficients(k, gamma, mu, notes, TOKEN: triton.language.constexpr, KEEP: triton.language.constexpr):
    """The step as the formulas have it, whose rounding adds up."""
    return rules.coefficients(k, gamma, mu, notes, TOKEN, False)


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def first_state(size, seed=0):
    rng = np.random.default_rng([seed, 0])
    return _unit(rng.standard_normal((1, 1, size, size), np.float32))


def tokens(size, segment, count, hard=False, seed=0):
    """Tokens of a segment: like those of the CPU's test of a million tokens, write gates up to 1/2 and values of normal
    deviates; or, `hard`, gates up to 1 and values three times as long, which makes rounding lose more."""
    rng = np.random.default_rng([seed, 1 + segment])
    q, k, v = (rng.standard_normal((1, count, 1, size), np.float32) for _ in range(3))
    return dict(q=_unit(q), k=_unit(k), v=np.float32(3 if hard else 1) * v,
                gamma=np.float32(1 if hard else 0.5) * rng.random((1, count, 1), np.float32),
                mu=0.5 + 0.5 * rng.random((1, count, 1), np.float32))


def compiled(target, size, plain=False):
    """The forward kernel of a target as a C program."""
    other = dict(COEFFICIENTS=plain_coefficients) if plain else {}
    return on_ptx.translated("forward", build("forward", target, RULE, size, size, **other))


def on_the_ptx_machine(program, bias=RANDOM):
    def step(x, state):
        return on_ptx.run_translated(program, "forward", RULE, dict(x, state=state), bias=bias)["state_out"]

    return step


def on_the_cpu():
    import torch

    import lattice

    def step(x, state):
        return lattice.scan(**{name: torch.from_numpy(value) for name, value in dict(x, state=state).items()})[1].numpy()

    return step


def drift(step, size, count, hard=False, seed=0):
    """[tokens, largest and mean relative error of the slots' lengths] after powers of two of segments, and at the end."""
    state = first_state(size, seed)
    lengths = np.linalg.norm(state.astype(np.float64), axis=-1)
    segment = min(SEGMENT, count)
    assert count % segment == 0
    rows = []
    for i in range(count // segment):
        state = step(tokens(size, i, segment, hard, seed), state)
        done = (i + 1) * segment
        if done & (done - 1) == 0 or done == count:
            off = np.linalg.norm(state.astype(np.float64), axis=-1) / lengths - 1
            rows.append([done, float(np.abs(off).max()), float(off.mean())])
    return rows


# 64 x 64 takes two and a half minutes of a core instead of ten seconds: Case("sm_90", 64) is left to who has them.
class Case(NamedTuple):
    where: str  # "cpu" or a target
    size: int  # slots and columns
    hard: bool = False
    bias: float = RANDOM


CASES = [*(Case(where, 16) for where in ("cpu", "sm_80", "sm_90", "sm_100")), Case("sm_90", 16, bias=1.0),
         Case("sm_90", 16, bias=-1.0), Case("cpu", 16, hard=True), Case("sm_90", 16, hard=True), Case("cpu", 64)]


def table(runs):
    """The runs as docs/gpu.md has them."""
    lines = ["| 2^20 tokens | slots x columns | rsqrt errs | largest error of a length | mean |", "|---|---|---|---|---|"]
    for run in runs:
        errs = {"random": "at random", "exact": "not", 1.0: "always +2 units", -1.0: "always -2 units"}[run["rsqrt"]]
        notes = ", hard tokens" if run["hard"] else ""
        lines.append(f"| {run['where']}{notes} | {run['size']} x {run['size']} | {errs} | {run['largest']:.1e} | {run['mean']:+.1e} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the results go, as JSON")
    parser.add_argument("--tokens", type=int, default=1 << 20, help="a power of two")
    options = parser.parse_args()
    runs = json.loads(options.out.read_text())["runs"] if options.out.exists() else []
    for case in CASES:
        what = dict(where=case.where, size=case.size, hard=case.hard, tokens=options.tokens,
                    rsqrt="exact" if case.where == "cpu" else "random" if case.bias == RANDOM else case.bias)
        if any(what.items() <= done.items() for done in runs):
            continue
        step = on_the_cpu() if case.where == "cpu" else on_the_ptx_machine(compiled(case.where, case.size), case.bias)
        begin = time.process_time()
        rows = drift(step, case.size, options.tokens, case.hard)
        runs.append(dict(what, largest=rows[-1][1], mean=rows[-1][2], on_the_way=rows))
        print(f"{what}: largest {rows[-1][1]:.1e}, mean {rows[-1][2]:.1e} ({time.process_time() - begin:.0f} s)", flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(dict(command="python tests/triton_drift.py", runs=runs), indent=1) + "\n")


if __name__ == "__main__":
    main()
