"""The machine of machine.py as a C program: the same results bit for bit, a thousand times as fast, for runs over very
many tokens. Every instruction becomes a loop over the threads of the block.

Watched here: accesses beyond a buffer and threads that branch differently. The other checks are those of machine.py, to
which a test compares this one.
"""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ptx.memory import WARP, Fault
from ptx.program import address_of, listed, parse

_C = {**{f"{sign}{bits}": f"{'int' if sign == 's' else 'uint'}{bits}_t" for sign in "bus" for bits in (8, 16, 32, 64)},
      "f32": "float", "f64": "double"}
_REGISTER = r"%(r|rd|rs|f|fd|p)(\d+)"
_WIDTH = dict(r=32, rd=64, rs=16, f=32, fd=64, p=8)
_WIDER = dict(s32="s64", u32="u64", s16="s32", u16="u32")
_COMPARE = dict(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=", lo="<", ls="<=", hi=">", hs=">=", neu="!=")
_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}

_PRELUDE = """
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef union { uint32_t b; float f; } w32;
typedef union { uint64_t b; double f; uint32_t h[2]; } w64;
static inline float f_of32(uint32_t b) { w32 x; x.b = b; return x.f; }
static inline uint32_t b_of32(float f) { w32 x; x.f = f; return x.b; }
static inline double f_of64(uint64_t b) { w64 x; x.b = b; return x.f; }
static inline uint64_t b_of64(double f) { w64 x; x.f = f; return x.b; }
static inline uint64_t pair(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }
static inline float fma32(float x, float y, float z) { return (float)((double)x * y + z); }
static double bias;  /* what an approximate instruction errs by, in shares of its bound; 2: at random */
static uint64_t seed;
static inline float blur(double exact, float units) {
  const float x = (float)exact;
  const uint64_t mixed = ((uint64_t)b_of32(x) + seed) * 0x9E3779B97F4A7C15u;
  const double noise = bias == 2 ? (double)(mixed >> 40) / 8388608.0 - 1 : bias;
  return (float)((double)x * (1 + units * noise * 0x1p-23));
}
"""


class Program:
    """PTX as a shared library. run() does what machine.launch() does, but counts no instructions."""

    def __init__(self, text, entry, shared_bytes):
        self.program = parse(text, entry)
        self.n, self.shared = self.program.threads, shared_bytes + 16
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "program.c", Path(folder) / "program.so"
            source.write_text(self._source())
            compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
            subprocess.run([compiler, "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-o", library,
                            source], check=True)
            self.library = ctypes.CDLL(str(library))

    def run(self, grid, arguments, seed=0, bias=2.0):
        """As launch(); with a bias in [-1,1] every approximate instruction errs by that share of its documented bound,
        always the same way."""
        buffers, values = [], []
        for x in arguments:
            if isinstance(x, tuple):
                buffers.append(np.ascontiguousarray(x[1]))
                assert buffers[-1] is x[1] or np.shares_memory(buffers[-1], x[1])
                values.append(len(buffers) << 40)
            else:
                values.append(int(x))
        values += [0] * (len(self.program.params) - len(values))
        bases = (ctypes.c_void_p * 64)(None, *(x.ctypes.data for x in buffers))
        sizes = (ctypes.c_uint64 * 64)(0, *(x.nbytes for x in buffers))
        params = (ctypes.c_uint64 * 64)(*(x & (2**64 - 1) for x in values))
        for block in range(grid):
            at = self.library.run(bases, sizes, params, ctypes.c_uint32(block), ctypes.c_uint64(seed), ctypes.c_double(bias))
            if at:
                raise Fault(f"instruction {at - 1}, {'.'.join(self.program.code[at - 1].parts)}: access beyond a buffer, or "
                            "threads of a block take different branches")

    def _source(self):
        lines, labels = [], {}
        for name, at in self.program.labels.items():
            labels.setdefault(at, []).append(name)
        for at, x in enumerate(self.program.code):
            lines += [f"{_label(name)}: ;" for name in labels.get(at, ())]
            lines.append("{ " + self._statement(x, at) + " }")
        lines += [f"{_label(name)}: ;" for name in labels.get(len(self.program.code), ())]
        registers = sorted(set(re.findall(_REGISTER, "\n".join(f"{x.guard} {x.args}" for x in self.program.code))))
        declared = [f"static uint{_WIDTH[kind]}_t {kind}{i}[{self.n}];" for kind, i in registers]
        head = (f"static uint8_t shared[{self.shared}];\n"
                "int run(uint8_t** base, const uint64_t* size, const uint64_t* params, uint32_t block, uint64_t seed_in, "
                "double bias_in) {\nseed = seed_in; bias = bias_in;\n")
        return "\n".join([_PRELUDE, *declared, head, *lines, "return 0;", "}"])

    def _statement(self, x, at):
        name, guard = x.parts[0], self._guard(x)
        if name in ("ret", "exit"):
            return "return 0;"
        if name in ("bar", "barrier"):
            return ""
        if name == "bra":
            return self._branch(x, at)
        if name == "ld" and x.parts[1] == "param":
            place = self.program.params.index(address_of(x.args[1])[0])
            return self._loop(guard, _put(x.args[0], f"params[{place}]", x.parts[-1]))
        if name in ("ld", "st"):
            return self._access(x, guard, at)
        if name in ("ldmatrix", "stmatrix"):
            return self._matrix(x, at)
        if name == "shfl":
            return self._shuffle(x)
        if name == "mov" and "{" in x.args[0] + x.args[1]:
            return self._loop(guard, _pack(x))
        return self._loop(guard, _put(x.args[0], _value(x), _result(x)))

    def _guard(self, x):
        return f"{'!' if x.inverted else ''}{_register(x.guard)}[t]" if x.guard else ""

    def _loop(self, guard, body):
        return f"for (int t = 0; t < {self.n}; ++t) {f'if ({guard}) ' if guard else ''}{{ {body} }}"

    def _branch(self, x, at):
        jump = f"goto {_label(x.args[0])};"
        if not x.guard:
            return jump
        count = f"int taken = 0; {self._loop('', f'taken += {self._guard(x)};')}"
        return f"{count} if (taken == {self.n}) {jump} if (taken) return {at + 1};"

    def _address(self, arg, space, size, at):
        """Statements that leave a pointer p for the thread t."""
        base, offset = address_of(arg)
        start = "0" if base == "global_smem" else f"{_register(base)}[t]"
        if space == "shared":
            return f"const uint64_t o = (uint32_t)({start} + {offset}); if (o + {size} > {self.shared}) return {at + 1}; " \
                   "uint8_t* p = shared + o;"
        return f"const uint64_t a = {start} + (int64_t){offset}, o = a & 0xFFFFFFFFFFu; " \
               f"if (o + {size} > size[a >> 40]) return {at + 1}; uint8_t* p = base[a >> 40] + o;"

    def _access(self, x, guard, at):
        load, kind = x.parts[0] == "ld", x.parts[-1]
        registers, bits = listed(x.args[not load]), _bits(kind)
        body = [self._address(x.args[load], x.parts[1], bits // 8 * len(registers), at)]
        for i, register in enumerate(registers):
            where = f"p + {i * bits // 8}"
            value = f"uint{bits}_t v{i}"
            if load:
                body.append(f"{value}; memcpy(&v{i}, {where}, sizeof v{i}); {_put(register, f'v{i}', f'b{bits}')}")
            else:
                body.append(f"{value} = {_operand(register, f'b{bits}')}; memcpy({where}, &v{i}, sizeof v{i});")
        return self._loop(guard, " ".join(body))

    def _shuffle(self, x):
        value, by = _operand(x.args[1], "b32"), _operand(x.args[2], "u32")
        source = f"t % {WARP} ^ (int){by}" if x.parts[2] == "bfly" else by
        to = _register(x.args[0].split("|")[0])
        return f"uint32_t v[{self.n}]; {self._loop('', f'v[t] = {value};')} " + self._loop(
            "", f"{to}[t] = v[t / {WARP} * {WARP} + ({source}) % {WARP}];")

    def _matrix(self, x, at):
        """Matrices of 8 rows of 16 bytes, as machine.py has them; values are read before any is written."""
        load = x.parts[0] == "ldmatrix"
        out = []
        for j, register in enumerate(listed(x.args[not load])):
            row = f"{_register(address_of(x.args[load])[0])}[t / {WARP} * {WARP} + {8 * j} + t % {WARP} / 4]"
            place = f"const uint64_t o = {row} + t % 4 * 4; if (o + 4 > {self.shared}) return {at + 1};"
            move = "memcpy(v + t, shared + o, 4);" if load else f"memcpy(shared + o, {_register(register)} + t, 4);"
            copy = f" memcpy({_register(register)}, v, sizeof v);" if load else ""
            out.append(f"{{ uint32_t v[{self.n}]; {self._loop('', place + move)}{copy} }}")
        return " ".join(out)


def _label(name):
    return "L" + re.sub(r"\W", "_", name)


def _register(name):
    match = re.fullmatch(_REGISTER, name)
    if not match:
        raise Fault(f"unknown register {name}")
    return match[1] + match[2]


def _bits(kind):
    return int(kind[1:])


def _operand(arg, kind):
    """A C expression for the thread t: a number of the type `kind`."""
    if re.fullmatch(_REGISTER, arg):
        raw = f"{_register(arg)}[t]"
        return f"f_of{_bits(kind)}({raw})" if kind[0] == "f" else f"({_C[kind]}){raw}"
    special = {"%tid.x": "t", "%laneid": f"t % {WARP}", "%ctaid.x": "block", "global_smem": "0"}
    if arg in special or re.fullmatch(r"%(tid|ctaid)\.[yz]", arg):
        return f"({_C[kind]})({special.get(arg, '0')})"
    if arg.startswith(("0f", "0d")):
        return f"f_of{_bits(kind)}(0x{arg[2:]}u)" if kind[0] == "f" else f"0x{arg[2:]}u"
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", arg):
        return f"({_C[kind]}){arg}ll"
    raise Fault(f"unknown operand {arg} of type {kind}")


def _predicate(arg):
    if arg.startswith("!"):
        return f"!{_register(arg[1:])}[t]"
    return str(int(arg != "0")) if arg in ("0", "1", "-1") else f"{_register(arg)}[t]"


def _put(register, value, kind):
    """A statement that stores a value of that type."""
    if register == "_":
        return ""
    return f"{_register(register)}[t] = {f'b_of{_bits(kind)}({value})' if kind[0] == 'f' and kind[1:].isdigit() else value};"


def _pack(x):
    wide = x.parts[-1]
    if wide != "b64":
        raise Fault("unknown instruction " + ".".join(x.parts))
    if "{" in x.args[1]:
        low, high = (_operand(arg, "b32") for arg in listed(x.args[1]))
        return f"{_register(x.args[0])}[t] = pair({low}, {high});"
    low, high = listed(x.args[0])
    return (f"const uint64_t v = {_operand(x.args[1], 'b64')}; " + _put(low, "(uint32_t)v", "b32") +
            _put(high, "(uint32_t)(v >> 32)", "b32"))


def _result(x):
    """The type of what _value gives."""
    kind = x.parts[-1]
    if x.parts[0] == "setp" or kind == "pred":
        return "pred"
    if x.parts[0] == "cvt":
        return x.parts[-2]
    return _WIDER[kind] if "wide" in x.parts else "b64" if kind == "f32x2" else kind


def _value(x):
    """A C expression for the result of an instruction without side effects."""
    name, kind, args = x.parts[0], x.parts[-1], x.args[1:]
    if kind == "pred":
        p = [_predicate(arg) for arg in args]
        return p[0] if name == "mov" else f"!{p[0]}" if name == "not" else f"({p[0]} {_INFIX[name]} {p[1]})"
    if name == "selp":
        return f"({_predicate(args[2])} ? {_operand(args[0], kind)} : {_operand(args[1], kind)})"
    if kind == "f32x2":
        halves = [[f"f_of32((uint32_t)({_operand(arg, 'b64')} >> {shift}))" for arg in args] for shift in (0, 32)]
        return "pair({}, {})".format(*(f"b_of32({_number(x, name, 'f32', half)})" for half in halves))
    if "wide" in x.parts:
        a, b, c = [*(f"({_C[_WIDER[kind]]}){_operand(arg, kind)}" for arg in args[:2]),
                   _operand(args[2], _WIDER[kind]) if len(args) > 2 else "0"]
        return f"({a} * {b} + {c})"
    kinds = [kind, "u32", "u32"] if name in ("shl", "shr", "bfe") else [kind] * 3
    return _number(x, name, kind, [_operand(arg, of) for arg, of in zip(args, kinds)])


def _number(x, name, kind, v):
    """An instruction on numbers of one type, whose operands are the expressions v."""
    if name == "setp":
        return f"({v[0]} {_COMPARE[x.parts[1]]} {v[1]})"
    if name in ("mov", "cvta"):
        return v[0]
    if name == "cvt" and x.parts[-2][0] != "f" and kind[0] != "f":
        return f"({_C[x.parts[-2]]}){v[0]}"
    if name in _INFIX:
        return f"({_C[kind]})({v[0]} {_INFIX[name]} {v[1]})"
    if name == "neg":
        return f"({_C[kind]})(-{v[0]})"
    if kind == "f32":
        return _float(x, name, v)
    bits = _bits(kind)
    templates = dict(mul="({0} * {1})", mad="({0} * {1} + {2})", div="({0} / {1})", rem="({0} % {1})",
                     min="({0} < {1} ? {0} : {1})", max="({0} > {1} ? {0} : {1})",
                     shl=f"({{1}} < {bits} ? {{0}} << {{1}} : 0)", shr=f"({{1}} < {bits} ? {{0}} >> {{1}} : 0)",
                     bfe=f"({{0}} << ({bits} - {{1}} - {{2}}) >> ({bits} - {{2}}))")
    templates["not"] = "(~{0})"
    if name not in templates or kind[0] == "f":
        raise Fault("unknown instruction " + ".".join(x.parts))
    return f"({_C[kind]}){templates[name].format(*v)}"


def _float(x, name, v):
    templates = {"mul": "({0} * {1})", "fma": "fma32({0}, {1}, {2})", "abs": "fabsf({0})", "max": "fmaxf({0}, {1})",
                 "min": "fminf({0}, {1})", "rsqrt": "blur(1 / sqrt((double){0}), 2)", "sqrt": "blur(sqrt((double){0}), 1)",
                 "rcp": "blur(1 / (double){0}, 1)", "div": "blur((double){0} / {1}, 2)"}
    approximate = {"approx", "full"} & set(x.parts)
    if name not in templates or "blur" in templates[name] and not approximate:
        raise Fault("unknown instruction " + ".".join(x.parts))
    return templates[name].format(*v)
