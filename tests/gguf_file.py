"""Writes GGUF files, and says what their quantised tensors mean, for the tests of `lattice import`.

The blocks are transcribed element by element from the format's description, apart from the C++ code.
"""

import struct

import numpy as np

TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "BF16": (30, 1, 2)}


def _text(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    kind = {str: 8, int: 5, float: 6}[type(value[0])]
    items = [_text(v) if kind == 8 else struct.pack("<i" if kind == 5 else "<f", v) for v in value]
    return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(items)


def write_gguf(path, metadata, tensors):
    """tensors: {name: (type, shape with rows first, bytes)}"""
    head, data = b"", b""
    for key, value in metadata.items():
        head += _text(key) + _value(value)
    for name, (kind, shape, raw) in tensors.items():
        data += b"\0" * (-len(data) % 32)
        head += _text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", TYPES[kind][0], len(data))
        data += raw
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + head
    path.write_bytes(start + b"\0" * (-len(start) % 32) + data)


def _half(block, at):
    return float(np.frombuffer(block[at:at + 2], np.float16)[0])


def _bit(block, at, i):
    return (block[at + i // 8] >> (i % 8)) & 1


def _nibble(block, at, i):
    """Integer i of 32: the low halves of 16 bytes, then the high ones."""
    return block[at + i] & 15 if i < 16 else block[at + i - 16] >> 4


def _scale_and_minimum(packed, j):
    if j < 4:
        return packed[j] & 63, packed[j + 4] & 63
    return (packed[j + 4] & 15) + 16 * (packed[j - 4] >> 6), (packed[j + 4] >> 4) + 16 * (packed[j] >> 6)


def _values(kind, block):
    if kind == "Q8_0":
        return [_half(block, 0) * struct.unpack_from("<b", block, 2 + i)[0] for i in range(32)]
    if kind == "Q4_0":
        return [_half(block, 0) * (_nibble(block, 2, i) - 8) for i in range(32)]
    if kind == "Q4_1":
        return [_half(block, 0) * _nibble(block, 4, i) + _half(block, 2) for i in range(32)]
    if kind == "Q5_0":
        return [_half(block, 0) * (_nibble(block, 6, i) + 16 * _bit(block, 2, i) - 16) for i in range(32)]
    if kind == "Q5_1":
        return [_half(block, 0) * (_nibble(block, 8, i) + 16 * _bit(block, 4, i)) + _half(block, 2) for i in range(32)]
    if kind in ("Q4_K", "Q5_K"):
        at, out = (16 if kind == "Q4_K" else 48), []
        for i in range(256):
            group = i // 32
            byte = block[at + group // 2 * 32 + i % 32]
            q = byte & 15 if group % 2 == 0 else byte >> 4
            if kind == "Q5_K":
                q += 16 * ((block[16 + i % 32] >> group) & 1)
            scale, minimum = _scale_and_minimum(block[4:16], group)
            out.append(_half(block, 0) * scale * q - _half(block, 2) * minimum)
        return out
    out = []
    for i in range(256):  # Q6_K
        half, group, j = i // 128, i % 128 // 32, i % 32
        low = block[64 * half + 32 * (group % 2) + j]
        q = (low & 15 if group < 2 else low >> 4) + 16 * ((block[128 + 32 * half + j] >> (2 * group)) & 3) - 32
        out.append(_half(block, 208) * struct.unpack_from("<b", block, 192 + 8 * half + 2 * group + j // 16)[0] * q)
    return out


def random_blocks(kind, shape, size, draw):
    """Bytes of a tensor of a type, with values of about `size`, and the values."""
    count = int(np.prod(shape))
    if kind in ("F32", "F16", "BF16"):
        values = draw.normal(0, size, count).astype(np.float32)
        if kind == "F16":
            values = values.astype(np.float16)
            return values.tobytes(), values.astype(np.float32).reshape(shape)
        if kind == "BF16":
            bits = values.view(np.uint32) >> 16
            return bits.astype(np.uint16).tobytes(), (bits << 16).view(np.float32).reshape(shape)
        return values.tobytes(), values.reshape(shape)
    _, block, width = TYPES[kind]
    halves = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}.get(kind, (0,))
    # The second number of a block is a minimum; with these the values have a mean of about zero.
    minimum = {"Q4_1": -7.5, "Q5_1": -15.5, "Q4_K": 7.5, "Q5_K": 15.5}.get(kind, 1)
    steps = {"Q4_K": 300, "Q5_K": 600, "Q6_K": 2500, "Q8_0": 80, "Q5_0": 9, "Q5_1": 18}.get(kind, 5)
    raw, values = b"", []
    for _ in range(count // block):
        one = bytearray(draw.integers(0, 256, width, dtype=np.uint8).tobytes())
        for at in halves:
            one[at:at + 2] = np.float16(size / steps * (minimum if at == 2 else 1)).tobytes()
        raw += bytes(one)
        values += _values(kind, one)
    return raw, np.array(values, np.float32).reshape(shape)
