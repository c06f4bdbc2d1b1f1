"""What instructions compute, on arrays with one element a thread."""

import numpy as np

from ptx.memory import Fault

TYPES = {name: np.dtype(kind) for name, kind in
         dict(b8="u1", u8="u1", s8="i1", b16="u2", u16="u2", s16="i2", b32="u4", u32="u4", s32="i4", b64="u8", u64="u8",
              s64="i8", f32="f4", f64="f8", bf16="u2").items()}  # bfloat16 by its bits
BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

COMPARE = dict(eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater, ge=np.greater_equal,
               lo=np.less, ls=np.less_equal, hi=np.greater, hs=np.greater_equal, ltu=lambda x, y: ~(x >= y),
               leu=lambda x, y: ~(x > y), gtu=lambda x, y: ~(x <= y), geu=lambda x, y: ~(x < y),
               equ=lambda x, y: (x == y) | (x != x) | (y != y), neu=np.not_equal)

LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not}

_SIMPLE = dict(add=np.add, sub=np.subtract, neg=np.negative, abs=np.abs)
_FLOAT = dict(_SIMPLE, mul=np.multiply, max=np.fmax, min=np.fmin)
_INTEGER = {**_SIMPLE, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
            "max": np.maximum, "min": np.minimum}


def blur(x, units, seed):
    """x with an error of up to that many units in the last place: arbitrary, but the same for the same x."""
    return (x.astype(np.float64) * (1 + units * _noise(x, seed) * 2.0**-23)).astype(np.float32)


def _noise(x, seed):
    """Between -1 and 1."""
    mixed = (x.view(np.uint32).astype(np.uint64) + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(40)).astype(np.float64) / 2**23 - 1


def narrow(x):
    """float32 to the bits of the nearest bfloat16, even ones at ties."""
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def convert(parts):
    """The function of a cvt instruction."""
    to, of = parts[-2:]
    if to == "bf16x2":  # the second operand becomes the lower half
        return lambda high, low: narrow(high).astype(np.uint32) << np.uint32(16) | narrow(low)
    if of == "bf16":
        return lambda x: (x.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if to == "bf16":
        return narrow
    return lambda x: x.astype(TYPES[to])


def fma(x, y, z):
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    return (x.astype(wide) * y.astype(wide) + z.astype(wide)).astype(x.dtype)


def _divide(x, y):
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -quotient, quotient).astype(x.dtype)


def floating(parts, seed):
    """The function of a float32 or float64 instruction. PTX documents 1 unit for sqrt.approx and rcp.approx and 2 for
    rsqrt.approx, div.full and ex2.approx; 2^-22 in all for lg2.approx near 1."""
    name, approximate = parts[0], "approx" in parts or "full" in parts
    exact, units = {"sqrt": (np.sqrt, 1), "rcp": (lambda x: 1 / x, 1), "rsqrt": (lambda x: 1 / np.sqrt(x), 2),
                    "div": (np.divide, 2), "ex2": (np.exp2, 2), "lg2": (np.log2, 2)}.get(name, (None, 0))
    if exact is None:
        return fma if name == "fma" else _find(_FLOAT, parts)

    def run(*values):
        out = exact(*(x.astype(np.float64) for x in values)).astype(values[0].dtype)
        if not approximate or out.dtype != np.float32:
            return out
        if name == "lg2":
            out = (out + 2.0**-22 * _noise(out, seed)).astype(np.float32)
        return blur(out, units, seed)

    return run


def half(name):
    """The function of a bfloat16 instruction on its bits."""
    if name != "neg":
        raise Fault(f"unknown instruction {name}.bf16")
    return lambda x: x ^ np.uint16(0x8000)


def integer(parts):
    name = parts[0]
    if name in ("mad", "mul") and parts[1] == "lo":
        return (lambda x, y, z: x * y + z) if name == "mad" else np.multiply
    if name == "div":
        return _divide
    if name == "rem":
        return np.fmod
    return _find(_INTEGER, parts)


def _find(functions, parts):
    if parts[0] not in functions:
        raise Fault("unknown instruction " + ".".join(parts))
    return functions[parts[0]]


def bit_field(x, at, count):
    """`count` bits of x from bit `at` on, as the type of x: with the sign of the highest of them if that has one."""
    bits = 8 * x.dtype.itemsize
    up = (bits - at - count).astype(x.dtype)
    down = (bits - count).astype(x.dtype)
    return np.right_shift(np.left_shift(x, up), down)


def pairs(name):
    """The function of an f32x2 instruction on arrays of b64."""
    single = fma if name == "fma" else _FLOAT[name]

    def run(*values):
        return single(*(np.ascontiguousarray(x).view(np.float32) for x in values)).view(np.uint64)

    return run
