"""What a training step costs on P ranks: computing, summing gradients, updating, and memory. All in seconds and bytes.

The figures of the program that the formulas follow: gradients go in buckets of 16 MiB from the last layer to the first
while the last micro-batch's backward pass goes on (src/train/gradient_buckets.cc), gloo sums them in a ring, two at a
time; every rank then computes the norm of all gradients, updates its share, and gathers the weights of the others
(src/train/flat_weights.cc).
"""

import math
from dataclasses import dataclass, replace

BUCKET = 16 << 20
BACKWARD = 2 / 3  # of a step's operations
CHUNK = 16 << 20  # of the gathered weights, over all ranks
AGREEMENTS = 4  # small sums of a step: loss and bytes, stop, save, join of a save


@dataclass(frozen=True)
class Work:
    """A training, whatever it runs on."""
    name: str
    parameters: int
    flops_per_token: float  # forward and backward
    batch_tokens: int
    seq_len: int
    activation_bytes: float  # of one token, kept for the backward pass

    @property
    def gradient_bytes(self):
        return 4 * self.parameters


@dataclass(frozen=True)
class Machine:
    nodes: int = 1
    ranks_per_node: int = 1
    rank_flops: float = 100e9  # that training sustains on one rank
    link_bytes: float = 12.5e9  # a second, of one node's link, each way
    local_bytes: float = 2e9  # a second, between ranks of a host
    latency: float = 30e-6  # of one message
    memory_bytes: float = 10e9  # a second, that a rank reads and writes
    node_mtbf: float = math.inf  # seconds between failures of one node
    spread: float = 0.0  # standard deviation of the logarithm of a rank's time for a step
    restart: float = 60.0  # seconds from a failure to the first new step
    save_delay: float = 1.0  # seconds by which a checkpoint delays training

    @property
    def ranks(self):
        return self.nodes * self.ranks_per_node


def ring_rate(machine):
    """Bytes a second along a ring that visits the ranks of a node one after the other: one stream in and one out of it."""
    if machine.nodes == 1:
        return machine.local_bytes
    return min(machine.link_bytes, machine.local_bytes) if machine.ranks_per_node > 1 else machine.link_bytes


def all_reduce(machine, count):
    P = machine.ranks
    return 0.0 if P == 1 else 2 * (P - 1) * (count / P / ring_rate(machine) + machine.latency)


def all_gather(machine, count):
    P = machine.ranks
    return 0.0 if P == 1 else (P - 1) * (count / P / ring_rate(machine) + machine.latency * max(1, count // CHUNK))


def micro_batches(work, machine, most_tokens=8192):
    rows = max(1, work.batch_tokens // work.seq_len // machine.ranks)
    micro = max(1, min(rows, most_tokens // work.seq_len))
    while rows % micro:
        micro -= 1
    return rows // micro, micro * work.seq_len


@dataclass(frozen=True)
class Step:
    compute: float
    window: float  # of it, the backward pass in which sums can hide
    sums: float  # all buckets, one after the other
    exposed: float  # of them, behind the backward pass
    gather: float
    update: float
    agree: float

    @property
    def seconds(self):
        return self.compute + self.exposed + self.gather + self.update + self.agree


def buckets(work):
    count = max(1, math.ceil(work.gradient_bytes / BUCKET))
    return [work.gradient_bytes / count] * count


def step(work, machine):
    """One step without stragglers: buckets become ready evenly through the last backward pass, and queue for the ring."""
    compute = work.batch_tokens / machine.ranks * work.flops_per_token / machine.rank_flops
    count, _ = micro_batches(work, machine)
    window = compute * BACKWARD / count
    sizes = buckets(work)
    end = 0.0
    for i, size in enumerate(sizes):
        end = max(end, window * (i + 1) / len(sizes)) + all_reduce(machine, size)
    sums = sum(all_reduce(machine, size) for size in sizes)
    update = 4 * work.parameters / machine.memory_bytes + 28 * work.parameters / machine.ranks / machine.memory_bytes
    gather = all_gather(machine, work.gradient_bytes)
    agree = AGREEMENTS * all_reduce(machine, 16 * machine.ranks)
    return Step(compute, window, sums, max(0.0, end - window), gather, update, agree)


def memory_per_rank(work, machine):
    """Weights, gradients with a bucket, the share of the moments, activations of a micro-batch."""
    _, tokens = micro_batches(work, machine)
    return 8 * work.parameters + BUCKET + 8 * work.parameters / machine.ranks + tokens * work.activation_bytes


def network_share(work, machine, one):
    """The share of a step in which a node's link is busy."""
    if machine.nodes == 1:
        return 0.0
    P = machine.ranks
    return min(1.0, (3 * (P - 1) / P * work.gradient_bytes / machine.link_bytes) / one.seconds)


def bound(one):
    parts = {"computing": one.compute, "sums of gradients that do not hide": one.exposed, "gathering weights": one.gather,
             "the update": one.update, "latency of small sums": one.agree}
    return max(parts, key=parts.get)


def with_ranks(machine, ranks):
    """The same kind of machine with another number of ranks, in whole nodes where there are enough."""
    per_node = min(machine.ranks_per_node, ranks)
    return replace(machine, nodes=max(1, ranks // per_node), ranks_per_node=per_node)
