"""Strong and weak scaling, and goodput under failures, as a figure for `lattice plot` (src/plot/figure_json.h)."""

import random
from dataclasses import replace

from plan import cost, simulate

RANKS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
HOUR, DAY = 3600.0, 86400.0


def speed(work, machine, seed):
    chance = random.Random(seed)
    return work.batch_tokens / (sum(simulate.step_seconds(work, machine, chance) for _ in range(5)) / 5)


def scaling(work, machine, seed):
    """(ranks, share of the ideal) with one size of step, and with a size that grows with the ranks."""
    rows = work.batch_tokens // work.seq_len
    alone = speed(work, cost.with_ranks(machine, 1), seed)
    strong = [[P, speed(work, cost.with_ranks(machine, P), seed) / alone / P] for P in RANKS if rows % P == 0]
    grown = [(P, replace(work, batch_tokens=work.seq_len * P)) for P in RANKS]
    first = speed(grown[0][1], cost.with_ranks(machine, 1), seed)
    weak = [[P, speed(one, cost.with_ranks(machine, P), seed) / first / P] for P, one in grown]
    return strong, weak


def goodput(machine, seed):
    """(nodes, goodput) at the best interval between checkpoints, and at one of an hour."""
    best, hourly = [], []
    for nodes in (8, 32, 128, 512, 2048, 8192):
        many = replace(machine, nodes=nodes)
        best.append([nodes, simulate.best_interval(many, 10 * DAY, seed, tries=5)[1]])
        chance = random.Random(seed)
        hourly.append([nodes, sum(simulate.train(many, 10 * DAY, HOUR, chance).goodput for _ in range(5)) / 5])
    return best, hourly


def describe(work, machine, seed):
    strong, weak = scaling(work, machine, seed)
    best, hourly = goodput(machine, seed)
    return {"kind": "lines", "title": f"{work.name}: what more ranks give, by the model of cost", "panels": [
        {"title": "scaling", "x_label": "ranks", "y_label": "share of the ideal speed", "log_x": True,
         "lines": [{"name": f"strong: {work.batch_tokens:,} tokens a step", "points": strong},
                   {"name": "weak: a sequence a rank", "points": weak}]},
        {"title": "goodput under failures", "x_label": "hosts", "y_label": "share of time that counts", "log_x": True,
         "lines": [{"name": "best interval", "points": best}, {"name": "a checkpoint an hour", "points": hourly}]}]}
