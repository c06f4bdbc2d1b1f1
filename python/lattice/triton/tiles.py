"""Matrices and rows as tuples of tiles: the columns [0,BW), [BW,2 BW), ... of a state [BM,BD], or of a row [1,BD].

The width of the tiles decides how Triton spreads a state over threads, and so what sums cost: a warp has four columns a
thread of a tile, and what lies in other tiles of the same rows and columns is the same thread's. Sums over columns
therefore add up the tiles first and then cross few threads. Not yet run on hardware (docs/gpu.md).
"""

import triton
import triton.language as tl


# For a second load of the same numbers: loads that look the same would become one, whose result occupied registers all
# the time.
AGAIN = tl.constexpr(".ca")


@triton.jit
def load(pointer, at, inside, m, d, D: tl.constexpr, TILES: tl.constexpr, BW: tl.constexpr, F: tl.constexpr,
         CACHE: tl.constexpr = ""):
    """The rows m of the matrix [*,D] that begins at pointer + at; zero where `inside` is false and beyond D."""
    out = ()
    for i in tl.static_range(TILES):
        column = d + i * BW
        out = out + (tl.load(pointer + at + m * D + column, mask=inside & (column < D), other=0.0,
                             cache_modifier=CACHE).to(F),)
    return out


@triton.jit
def store(pointer, at, x, inside, m, d, D: tl.constexpr, BW: tl.constexpr):
    for i in tl.static_range(len(x)):
        column = d + i * BW
        tl.store(pointer + at + m * D + column, x[i], mask=inside & (column < D))


@triton.jit
def zeros(BM: tl.constexpr, TILES: tl.constexpr, BW: tl.constexpr, F: tl.constexpr):
    out = ()
    for _ in tl.static_range(TILES):
        out = out + (tl.zeros([BM, BW], F),)
    return out


@triton.jit
def add(x, y):
    out = ()
    for i in tl.static_range(len(x)):
        out = out + (x[i] + y[i],)
    return out


@triton.jit
def scale(a, x):
    """a x, a being a number a slot or one number."""
    out = ()
    for i in tl.static_range(len(x)):
        out = out + (a * x[i],)
    return out


@triton.jit
def outer(a, x, y):
    """a x + y: with x a row, its product with a number a slot is added to the matrix y; with a matrix x, each of its
    slots is scaled."""
    out = ()
    for i in tl.static_range(len(x)):
        out = out + (a * x[i] + y[i],)
    return out


@triton.jit
def over_columns(x, y):
    """[BM,1], or [1,1] of rows: the dot products of the slots of x with those of y, or with the row y."""
    total = x[0] * y[0]
    for i in tl.static_range(1, len(x)):
        total += x[i] * y[i]
    return tl.sum(total, 1, keep_dims=True)


@triton.jit
def _add2(a, b, x, y):
    return a + x, b + y


@triton.jit
def _add3(a, b, c, x, y, z):
    return a + x, b + y, c + z


@triton.jit
def sums_over_slots(a, b, c):
    """The sums [1,1] of three vectors of slots, which cross the warps together."""
    x, y, z = tl.reduce((a, b, c), 0, _add3, keep_dims=True)
    return x, y, z


@triton.jit
def _add4(a, b, c, d, x, y, z, w):
    return a + x, b + y, c + z, d + w


@triton.jit
def over_slots(a, x):
    """The row of sums over slots of a x. Two or four tiles cross the warps together."""
    if len(x) == 2:
        p, q = tl.reduce((a * x[0], a * x[1]), 0, _add2, keep_dims=True)
        return p, q
    elif len(x) == 4:
        p, q, r, s = tl.reduce((a * x[0], a * x[1], a * x[2], a * x[3]), 0, _add4, keep_dims=True)
        return p, q, r, s
    else:
        out = ()
        for i in tl.static_range(len(x)):
            out = out + (tl.sum(a * x[i], 0, keep_dims=True),)
        return out
