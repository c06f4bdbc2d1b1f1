"""How much a difference in the initial state grows over 512 tokens: python results/select/stability.py > results/select/stability.md

Keys are random unit vectors, values have one length and nearly one direction, as those of trained layers do: `spread` is how
far they stray from it. The growth is the norm of the gradient of the final state along a random direction; each cell has the
median and the largest of 16 sequences, in float64.
"""

import torch
from torch.nn.functional import normalize

import lattice

TOKENS, SLOTS, WIDTH, SEQUENCES, GATE = 512, 64, 64, 16, 0.75
LENGTHS = (1, 4, 8, 16, 32, 64)
SPREADS = (1, 0.4, 0.1)
MEMORIES = ("Lattice-Dec", "Lattice-Dec, not normalized", "DeltaNet")


def final_state(memory, k, v, gamma, state):
    if memory == "DeltaNet":
        return lattice.recur("deltanet", k, k, v, gamma=gamma, state=state)[1]
    return lattice.scan(k, k, v, gamma, state=state, normalize="token" if memory == "Lattice-Dec" else "none")[1]


def growth(memory, spread, length, sequences=SEQUENCES):
    """The growth in each of the sequences."""
    random = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    k = normalize(draw(sequences, TOKENS, 1, SLOTS), dim=-1)
    direction = normalize(draw(sequences, 1, 1, WIDTH), dim=-1)
    v = length * normalize(direction + spread / WIDTH**0.5 * draw(sequences, TOKENS, 1, WIDTH), dim=-1)
    gamma = torch.full((sequences, TOKENS, 1), GATE, dtype=torch.float64)
    state = normalize(draw(sequences, 1, SLOTS, WIDTH), dim=-1).requires_grad_()
    end = final_state(memory, k, v, gamma, state)
    along = normalize(draw(*end.shape).flatten(1), dim=-1).view(end.shape)
    (gradient,) = torch.autograd.grad((end * along).sum(), [state])
    return gradient.flatten(1).norm(dim=-1)


def main():
    print("# Growth of a difference in the initial state\n\nMade by stability.py: median and largest of "
          f"{SEQUENCES} sequences of {TOKENS} tokens, {SLOTS} x {WIDTH}, write gate {GATE}.\n")
    print("| memory | spread of values | " + " | ".join(f"length {length}" for length in LENGTHS) + " |")
    print("|---|---:|" + "---:|" * len(LENGTHS))
    for memory in MEMORIES:
        for spread in SPREADS:
            cells = [growth(memory, spread, length) for length in LENGTHS]
            print(f"| {memory} | {spread} | " + " | ".join(f"{x.median():.2g}, {x.max():.2g}" for x in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
