"""Saved states of sessions that no honest client would send."""

import hashlib
import struct

from torture.safetensors import Tensor, pack, unpack


def checksum(tensors, position):
    """As the server computes it: over the position and every tensor's name, size and bytes."""
    digest = hashlib.sha256(position.encode())
    for name in sorted(tensors):
        data = tensors[name].data
        digest.update(f"\n{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def forge(state, value, position=0):
    """The state with every number replaced by value(i), at another position, under a checksum that matches."""
    tensors, metadata = unpack(state)
    for name, tensor in tensors.items():
        numbers = [value(i) for i in range(tensor.count)]
        tensors[name] = Tensor(tensor.shape, struct.pack(f"<{tensor.count}f", *numbers))
    place = str(position)
    return pack(tensors, {**metadata, "position": place, "checksum": checksum(tensors, place)})


def mutated(state, draw):
    """The state with one thing wrong: flipped bits, a byte changed, a piece cut out, doubled or added."""
    content = bytearray(state)
    header = int.from_bytes(state[:8], "little")
    # Half of the changes hit the header, which is small and says the most.
    place = draw.randrange(8 + header if draw.random() < 0.5 else len(content))
    kind = draw.randrange(6)
    if kind == 0:
        content[place] ^= 1 << draw.randrange(8)
    elif kind == 1:
        content[place] = (content[place] + draw.randrange(1, 256)) % 256
    elif kind == 2:
        del content[place:]
    elif kind == 3:
        del content[place:place + draw.randrange(1, 64)]
    elif kind == 4:
        content[place:place] = content[place:place + draw.randrange(1, 64)]
    else:
        length = draw.choice([0, 1, 2 ** 63, 2 ** 64 - 1, len(content), header - 8, header + 8])
        content[:8] = length.to_bytes(8, "little")
    return bytes(content)
