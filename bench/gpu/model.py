"""What limits the GPU kernels, on paper: from the machine code of their loops over tokens to head-tokens a second."""

import re
from dataclasses import dataclass
from typing import NamedTuple

import cuda_one_warp
import sass
import triton_compile
from lattice.triton import launch

M = D = 64
_WARP = 32
_SCHEDULERS = 4
_REGISTERS, _MOST_WARPS, _MOST_BLOCKS = 65536, 64, 32  # of a multiprocessor
_REGISTER_UNIT = 8  # they are given to threads in such units


class Card(NamedTuple):
    """Makers' figures; lanes: additions or products of float32 that a multiprocessor starts in a cycle."""

    target: str
    processors: int
    gigahertz: float
    terabytes: float  # a second, to and from memory
    lanes: int
    shared: int  # bytes of shared memory of a multiprocessor


CARDS = {"A100": Card("sm_80", 108, 1.41, 2.0, 64, 164 << 10), "H100": Card("sm_90", 132, 1.755, 3.35, 128, 228 << 10),
         "B200": Card("sm_100", 148, 1.85, 8.0, 128, 228 << 10)}


@dataclass(frozen=True)
class Loop:
    """A loop over tokens and the kernel around it."""

    name: str
    code: list
    warps: int
    registers: int
    shared: int
    traffic: float  # bytes to and from memory, a token


def _traffic(name):
    """A token's vectors; a checkpoint every 32 tokens forward, a state stored and loaded once in the backward pass."""
    state = 4 * M * D
    vectors = dict(forward=2 * M + 2 * D, recompute=2 * M + 3 * D, adjoint=3 * M + 3 * D)[name]
    return 4 * vectors + (state / launch.BLOCK if name == "forward" else state)


def triton_loops(target):
    loops = []
    for which, names in (("forward", ["forward"]), ("backward", ["recompute", "adjoint"])):
        built = triton_compile.build(which, target, M=M, D=D)
        needs = triton_compile.resources(built, target)
        for name, code in zip(names, sass.loops(built.asm["cubin"]), strict=True):
            loops.append(Loop(name, code, launch.layout(M, D, backward=which == "backward").warps, needs["registers"], needs["shared"], _traffic(name)))
    return loops


def one_warp_loop(target):
    """The experiment of tests/cuda/one_warp.cu, or None where there is no nvcc."""
    if not cuda_one_warp.NVCC:
        return None
    code, needs = cuda_one_warp.loop(target)
    return Loop("forward", code, 1, needs["registers"], 0, _traffic("forward"))


def _wide(names, pattern):
    """Instructions, those on pairs of numbers (FFMA2) twice."""
    return sum(2 if re.match(r"F\w+2\b", name) else 1 for name in names if re.match(pattern, name))


def _exchanges(names):
    """Cycles of the unit for shared memory and shuffles, which moves 32 words in each."""
    words = {"128": 4, "64": 2}
    return sum(words.get(name.rsplit(".", 1)[-1], 1) for name in names if re.match("SHFL|LDS|STS|LDSM|STSM", name))


def blocks(loop, card):
    """Programs that a multiprocessor holds at once."""
    registers = -(-loop.registers // _REGISTER_UNIT) * _REGISTER_UNIT * _WARP * loop.warps
    limits = [_REGISTERS // registers, _MOST_WARPS // loop.warps, _MOST_BLOCKS]
    return min(limits + ([card.shared // (loop.shared + 1024)] if loop.shared else []))


def limits(loop, card):
    """Million head-tokens a second by each of what may limit them."""
    names = [name for name, _, _ in loop.code]
    busy = dict(issue=loop.warps * len(names) / _SCHEDULERS,
                float=loop.warps * _wide(names, "F(FMA|MUL|ADD)") * _WARP / card.lanes,
                exchange=loop.warps * _exchanges(names),
                special=loop.warps * _wide(names, "MUFU") * 2,  # 16 lanes
                latency=sass.cycles(loop.code) / blocks(loop, card))
    rates = {limit: card.processors * card.gigahertz * 1e3 / cycles for limit, cycles in busy.items()}
    return dict(rates, memory=card.terabytes * 1e6 / loop.traffic)


def figures(loop, card):
    rates = limits(loop, card)
    limit = min(rates, key=rates.get)
    return dict(name=loop.name, warps=loop.warps, registers=loop.registers, blocks=blocks(loop, card),
                instructions=len(loop.code), kinds=dict(sass.count(loop.code)), cycles=sass.cycles(loop.code),
                rates={name: round(rate, 1) for name, rate in rates.items()}, limit=limit, rate=round(rates[limit], 1))


def _together(rows):
    return round(1 / sum(1 / row["rate"] for row in rows), 1)


def model(name):
    """The figures of a card: its loops, forward and forward+backward in million head-tokens a second."""
    card = CARDS[name]
    rows = [figures(loop, card) for loop in triton_loops(card.target)]
    out = dict(card=name, loops=rows, forward=rows[0]["rate"], both=_together(rows))
    if one := one_warp_loop(card.target):
        row = figures(one, card)
        out.update(one_warp=row, one_warp_both=_together([row, *rows[1:]]))
    return out
