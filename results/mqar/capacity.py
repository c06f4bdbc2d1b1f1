"""How many random pairs a memory holds, without training: python results/mqar/capacity.py > results/mqar/capacity.md

Pairs of a random unit key (M numbers) and one of V random unit vectors (D numbers) are written one after the other,
then every key is asked for its value. What is read, and the key, go through the linear map that fits best on one half
of the sequences; the other half counts how often the nearest of the V vectors is the right one. Of the write gates
and lengths of values tried, the best for each memory.
"""

import torch
from torch.nn.functional import normalize

import lattice

GATES = (0.05, 0.1, 0.2, 0.35, 0.6, 0.9)
LENGTHS = (0.5, 1, 3)
SIZES = ((16, 16, 16, 64), (16, 16, 32, 64), (32, 32, 32, 128), (32, 32, 64, 256), (64, 64, 128, 1024), (64, 64, 256, 1024))
MEMORIES = (("DeltaNet", "zeros"), ("TTT", "random"), ("TTT", "aligned"), ("Lattice-Dec", "random"), ("Lattice-Dec", "aligned"))


def start(kind, slots, width):
    if kind == "zeros":
        return torch.zeros(slots, width)
    return normalize(torch.ones(slots, width) if kind == "aligned" else torch.randn(slots, width), dim=-1)


def write(memory, state, keys, values, gate):
    """The state [B,1,M,D] after writing keys [B,N,M] and values [B,N,D]."""
    k, v = keys[:, :, None], values[:, :, None]
    gamma = torch.full(k.shape[:3], gate)
    if memory == "Lattice-Dec":
        return lattice.scan(k, k, v, gamma, state=state)[1]
    return lattice.recur(memory.lower(), k, k, v, gamma=gamma, state=state)[1]


def accuracy(memory, kind, size, gate, length, sequences=200):
    slots, width, pairs, vocabulary = size
    torch.manual_seed(0)
    words = normalize(torch.randn(vocabulary, width), dim=-1)
    keys = normalize(torch.randn(sequences, pairs, slots), dim=-1)
    right = torch.stack([torch.randperm(vocabulary)[:pairs] for _ in range(sequences)])
    state = start(kind, slots, width).expand(sequences, 1, slots, width).contiguous()
    state = write(memory, state, keys, words[right] * length, gate)
    read = torch.cat([keys @ state[:, 0], keys], dim=-1)
    fit, test = read[: sequences // 2].flatten(0, 1), read[sequences // 2:].flatten(0, 1)
    target = words[right[: sequences // 2].flatten()]
    linear = torch.linalg.solve(fit.T @ fit + 1e-3 * torch.eye(fit.shape[1]), fit.T @ target)
    nearest = (test @ linear @ words.T).argmax(-1)
    return (nearest == right[sequences // 2:].flatten()).double().mean().item()


def main():
    print("# Random pairs held, without training\n\nMade by capacity.py; accuracy in %, (write gate, length of values).\n")
    print("| slots x width, pairs, values | " + " | ".join(f"{m}, {kind}" for m, kind in MEMORIES) + " |")
    print("|---|" + "---:|" * len(MEMORIES))
    for size in SIZES:
        cells = []
        for memory, kind in MEMORIES:
            tried = [(accuracy(memory, kind, size, g, n), g, n) for g in GATES for n in LENGTHS]
            best = max(tried)
            cells.append(f"{100 * best[0]:.1f} ({best[1]}, {best[2]})")
        print(f"| {size[0]} x {size[1]}, {size[2]}, {size[3]} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
