"""Safetensors files as bytes: eight bytes of header length, a JSON header, the tensors' data."""

import json
import struct
from dataclasses import dataclass


@dataclass
class Tensor:
    shape: list
    data: bytes  # float32, little-endian

    @property
    def count(self):
        return len(self.data) // 4


def pack(tensors, metadata=None):
    """Bytes of a file with these float32 tensors, {name: Tensor}, in the order of their names."""
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name in sorted(tensors):
        tensor = tensors[name]
        header[name] = dict(dtype="F32", shape=tensor.shape, data_offsets=[offset, offset + len(tensor.data)])
        offset += len(tensor.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensors[name].data for name in sorted(tensors))


def unpack(content):
    """({name: Tensor}, metadata) of a file that holds float32 tensors."""
    size = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = Tensor(entry["shape"], content[8 + size + begin:8 + size + end])
    return tensors, metadata
