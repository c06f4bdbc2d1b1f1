"""Executes a program, one thread block after the other, all threads of a block in step."""

import re

import numpy as np

from ptx import arithmetic
from ptx.arithmetic import BITS, TYPES
from ptx.memory import WARP, Buffer, Fault, GlobalMemory
from ptx.program import address_of, listed, parse

_POISON = 0x7FC0DEAD7FC0DEAD  # NaN in both halves: what a register holds before it is written


def launch(text, entry, grid, arguments, shared_bytes, seed=0):
    """Runs `grid` blocks. Arguments are ints, or (name, array, written) for buffers, which are changed in place.

    Returns the memory, whose shadows know what was written, and the instructions a thread of the last block executed.
    """
    program, memory, values = parse(text, entry), GlobalMemory(), []
    for x in arguments:
        values.append(memory.add(*x) if isinstance(x, tuple) else int(x))
    if len(values) < len(program.params):  # Triton's own scratch pointers come last
        hidden = memory.add("hidden", np.zeros(64, np.uint8), False)
        values += [hidden] * (len(program.params) - len(values))
    machine = Machine(program, memory, dict(zip(program.params, values)), shared_bytes, seed)
    with np.errstate(all="ignore"):
        for block in range(grid):
            executed = machine.run(block)
    return memory, executed


class Machine:
    def __init__(self, program, memory, params, shared_bytes, seed):
        self.program, self.memory, self.params, self.seed = program, memory, params, seed
        self.shared_bytes = shared_bytes + 16
        self.n = program.threads
        self.thread = np.arange(self.n)
        self.lane = self.thread % WARP
        self.regs = {}
        self.steps = [self._decode(x) for x in program.code]
        halves = any(x.parts[:2] == ("st", "shared") and x.parts[-1].endswith("16") for x in program.code)
        self.shared_word = 2 if halves else 4

    def run(self, block):
        self.regs.clear()
        self.block, self.now, self.group = block, (0, 0), 0
        self.shared = Buffer("shared memory", np.zeros(self.shared_bytes, np.uint8), False, self.shared_word)
        for buffer in self.memory.buffers:
            buffer.shadow.forget()
        at = executed = 0
        while at is not None:
            target = self.steps[at]()
            at = at + 1 if target is False else target
            executed += 1
        return executed

    # Every step is a function: False goes on, a number jumps, None ends.
    def _decode(self, x):
        name = x.parts[0]
        mask = self._mask(x)
        if name in ("ret", "exit"):
            return lambda: None
        if name == "bra":
            return self._branch(self.program.labels[x.args[0]], mask)
        if name in ("bar", "barrier"):
            return self._barrier("warp" in x.parts)
        if name == "ld" and x.parts[1] == "param":
            value = np.full(self.n, self.params[address_of(x.args[1])[0]] & (2**64 - 1), np.uint64)
            return self._assign(x.args[0], lambda: value.astype(TYPES[x.parts[-1]]), mask)
        if name in ("ld", "st"):
            return self._access(x, mask)
        if name == "cp" and x.parts[1] == "async":
            return self._copy(x, mask)
        if name == "ldmatrix":
            return self._load_matrix(x, mask)
        if name == "stmatrix":
            return self._store_matrix(x)
        if name == "mov" and ("{" in x.args[0] or "{" in x.args[1]):
            return self._pack(x, mask)
        return self._assign(x.args[0].split("|")[0], self._value(x), mask)

    def _mask(self, x):
        if not x.guard:
            return lambda: None
        return (lambda: ~self.regs[x.guard]) if x.inverted else (lambda: self.regs[x.guard])

    def _branch(self, target, mask):
        def run():
            taken = mask()
            if taken is None:
                return target
            if taken.any() != taken.all():
                raise Fault("threads of a block take different branches")
            return target if taken[0] else False

        return run

    def _barrier(self, of_warp):
        return self._do(lambda: setattr(self, "now", (self.now[0] + (not of_warp), self.now[1] + 1)))

    def _assign(self, register, value, mask):
        def run():
            self._put(register, value(), mask())
            return False

        return run

    def _put(self, register, value, mask):
        if register == "_":
            return
        if value.dtype != bool:
            size = 8 if register.startswith(("%rd", "%fd")) else 2 if register.startswith(("%rs", "%h")) else 4
            value = value.view(BITS[value.dtype.itemsize])
            if size != value.dtype.itemsize:
                value = value.astype(BITS[size])
        if mask is not None:
            value = np.where(mask, value, self._old(register, value.dtype))
        self.regs[register] = value

    def _old(self, register, dtype):
        if register in self.regs:
            return self.regs[register]
        return np.full(self.n, _POISON & (2**(8 * dtype.itemsize) - 1), dtype) if dtype != np.bool_ else np.zeros(self.n, bool)

    def _operand(self, arg, kind):
        """A function that gives an operand as an array of that type."""
        dtype = TYPES[kind]
        if re.fullmatch(r"%(r|rd|rs|f|fd|h|hh|b)\d+", arg):
            return lambda: self._register(arg, dtype)
        special = {"%tid.x": self.thread, "%laneid": self.lane, "global_smem": 0 * self.thread}
        if arg == "%ctaid.x":
            return lambda: np.full(self.n, self.block).astype(dtype)
        if arg in special or re.fullmatch(r"%(tid|ctaid)\.[yz]", arg):
            value = special.get(arg, 0 * self.thread).astype(dtype)
        elif arg.startswith(("0f", "0d")):
            value = np.full(self.n, int(arg[2:], 16), BITS[dtype.itemsize]).view(dtype)
        elif re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", arg) and dtype.kind != "f":
            value = np.full(self.n, int(arg, 0) & (2**(8 * dtype.itemsize) - 1), BITS[dtype.itemsize]).view(dtype)
        else:
            raise Fault(f"unknown operand {arg} of type {kind}")
        return lambda: value

    def _register(self, name, dtype):
        value = self.regs.get(name)
        if value is None:
            value = self._old(name, BITS[dtype.itemsize])
        if value.dtype.itemsize != dtype.itemsize:
            value = value.astype(BITS[dtype.itemsize])
        return value.view(dtype)

    def _predicate(self, arg):
        if arg.startswith("!"):
            return lambda: ~self.regs[arg[1:]]
        if arg in ("0", "1", "-1"):
            value = np.full(self.n, arg != "0")
            return lambda: value
        return lambda: self.regs[arg]

    def _value(self, x):
        """The function that computes the result of an instruction without side effects."""
        name, kind, args = x.parts[0], x.parts[-1], x.args[1:]
        if kind == "pred":
            run = (lambda value: value) if name == "mov" else arithmetic.LOGIC[name]
            operands = [self._predicate(arg) for arg in args]
        elif name == "selp":
            run = lambda which, a, b: np.where(which, a, b)  # noqa: E731
            operands = [self._predicate(args[2]), self._operand(args[0], kind), self._operand(args[1], kind)]
        elif name == "shfl":
            return self._shuffle(x)
        else:
            run, kinds = self._function(x, name, kind)
            operands = [self._operand(arg, of) for arg, of in zip(args, kinds)]
        return lambda: run(*(operand() for operand in operands))

    def _function(self, x, name, kind):
        """The function of an instruction on numbers, and the types of its operands."""
        if name == "setp":
            if len(x.args) > 3:
                raise Fault("setp with a third operand is not modelled")
            return arithmetic.COMPARE[x.parts[1]], (kind, kind)
        if name in ("mov", "cvta"):  # global and generic addresses are the same here
            return (lambda value: value.copy()), (kind,)
        if name == "cvt":
            return arithmetic.convert(x.parts), (kind, kind)
        if name in ("shl", "shr"):
            shift = np.left_shift if name == "shl" else np.right_shift
            bits = 8 * TYPES[kind].itemsize
            return (lambda value, by: np.where(by < bits, shift(value, by.astype(value.dtype)), 0).astype(value.dtype),
                    (kind, "u32"))
        if name == "bfe":
            return arithmetic.bit_field, (kind, "u32", "u32")
        if "wide" in x.parts:
            wide = {"s32": "s64", "u32": "u64", "s16": "s32", "u16": "u32"}[kind]
            multiply = lambda a, b, c=0: a.astype(TYPES[wide]) * b.astype(TYPES[wide]) + c  # noqa: E731
            return (lambda *v: multiply(*v).astype(TYPES[wide])), (kind, kind, wide)
        if kind == "f32x2":
            return arithmetic.pairs(name), ("b64",) * 3
        if kind == "bf16":
            return arithmetic.half(name), (kind,)
        if TYPES[kind].kind == "f":
            return arithmetic.floating(x.parts, self.seed), (kind,) * 3
        return arithmetic.integer(x.parts), (kind,) * 3

    def _shuffle(self, x):
        value, by = self._operand(x.args[1], "b32"), self._operand(x.args[2], "u32")
        if x.parts[1:3] not in (("sync", "bfly"), ("sync", "idx")):
            raise Fault("unknown instruction " + ".".join(x.parts))
        source = np.bitwise_xor if x.parts[2] == "bfly" else lambda lane, index: index % WARP
        return lambda: value()[self.thread - self.lane + source(self.lane, by().astype(np.int64)) % WARP]

    def _pack(self, x, mask):
        """mov between a register and the two registers of its halves."""
        kind = x.parts[-1]
        half = {"b32": "b16", "b64": "b32"}[kind]
        if "{" in x.args[1]:
            parts = [self._operand(arg, half) for arg in listed(x.args[1])]
            whole = lambda: np.stack([part() for part in parts], 1).view(TYPES[kind])[:, 0].copy()  # noqa: E731
            return self._assign(x.args[0], whole, mask)
        value, registers = self._operand(x.args[1], kind), listed(x.args[0])

        def run():
            halves = value().copy().view(TYPES[half]).reshape(self.n, 2)
            for i, register in enumerate(registers):
                self._put(register, halves[:, i].copy(), mask())
            return False

        return run

    def _address(self, arg, space):
        base, offset = address_of(arg)
        value = self._operand(base, "u32" if space == "shared" else "u64")
        return lambda: value().astype(np.int64) + offset

    def _place(self, space, address, active, size):
        if space == "shared":
            buffer, at = self.shared, address[active]
        else:
            buffer, at = self.memory.find(address[active].view(np.uint64))
        buffer.check(at, size)
        return buffer, at

    def _access(self, x, mask):
        if x.parts[1] not in ("global", "shared"):
            raise Fault("unknown instruction " + ".".join(x.parts))
        space, kind = x.parts[1], x.parts[-1]
        load = x.parts[0] == "ld"
        bits = BITS[TYPES[kind].itemsize]
        address = self._address(x.args[load], space)
        registers = listed(x.args[not load])
        values = None if load else [self._operand(register, kind) for register in registers]

        def run():
            guard = mask()
            active = self.thread if guard is None else np.flatnonzero(guard)
            if active.size == 0:
                return False
            buffer, at = self._place(space, address(), active, bits.itemsize * len(registers))
            for i, register in enumerate(registers):
                where = at + i * bits.itemsize
                if load:
                    out = np.zeros(self.n, bits)
                    out[active] = buffer.load(where, bits, active, self.now)
                    self._put(register, out, guard)
                else:
                    buffer.store(where, values[i]().view(bits)[active], active, self.now)
            return False

        return run

    def _copy(self, x, mask):
        """cp.async: copies from global to shared memory that arrive when a thread waits for their group."""
        if x.parts[2] == "commit_group":
            return self._do(lambda: setattr(self, "group", self.group + 1))
        if x.parts[2] == "wait_group":
            newest = int(x.args[0], 0)
            return self._do(lambda: self.shared.shadow.arrive(self.group - newest, self.now))
        to, source, size = self._address(x.args[0], "shared"), self._address(x.args[1], "global"), int(x.args[2], 0)
        count = self._operand(x.args[3], "u32") if len(x.args) > 3 else lambda: np.full(self.n, size, np.uint32)

        def run():
            guard = mask()
            active = self.thread if guard is None else np.flatnonzero(guard)
            if active.size == 0:
                return False
            _, at = self._place("shared", to(), active, size)
            wanted = count()[active] == size  # the others are filled with zeros
            values = np.zeros((active.size, size // 4), BITS[4])
            if wanted.any():
                buffer, where = self._place("global", source(), active[wanted], size)
                for i in range(size // 4):
                    values[wanted, i] = buffer.load(where + 4 * i, BITS[4], active[wanted], self.now)
            for i in range(size // 4):
                self.shared.store(at + 4 * i, values[:, i].copy(), active, self.now)
                for part in range(4 * i, 4 * i + 4, self.shared_word):
                    self.shared.shadow.copied_by[(at + part) // self.shared_word] = self.group
            return False

        return run

    def _do(self, action):
        def run():
            action()
            return False

        return run

    def _load_matrix(self, x, mask):
        """Matrices of 8 rows of 16 bytes: lane 8 j + i gives the address of row i of matrix j, and every lane gets four
        bytes of each matrix. Words that nobody wrote may be fetched, not used."""
        registers = listed(x.args[0])
        if x.parts[1:4] != ("sync", "aligned", "m8n8") or "trans" in x.parts:
            raise Fault("unknown instruction " + ".".join(x.parts))
        address = self._address(x.args[1], "shared")

        def run():
            rows = address()
            for j, register in enumerate(registers):
                at = rows[self.thread - self.lane + 8 * j + self.lane // 4] + self.lane % 4 * 4
                self.shared.check(at, 4)
                written = self.shared.shadow.written
                known = written[at // self.shared_word] & written[(at + 3) // self.shared_word]
                out = np.full(self.n, _POISON & 0xFFFFFFFF, np.uint32)
                out[known] = self.shared.load(at[known], BITS[4], self.thread[known], self.now)
                self._put(register, out, mask())
            return False

        return run

    def _store_matrix(self, x):
        """The same the other way round: every lane gives four bytes of each matrix."""
        if x.parts[1:4] != ("sync", "aligned", "m8n8") or "trans" in x.parts or x.guard:
            raise Fault("unknown instruction " + ".".join(x.parts))
        address = self._address(x.args[0], "shared")
        values = [self._operand(register, "b32") for register in listed(x.args[1])]

        def run():
            rows = address()
            for j, value in enumerate(values):
                at = rows[self.thread - self.lane + 8 * j + self.lane // 4] + self.lane % 4 * 4
                self.shared.check(at, 4)
                self.shared.store(at, value().view(BITS[4]), self.thread, self.now)
            return False

        return run
