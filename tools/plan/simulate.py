"""A discrete-event simulation of training on many ranks: stragglers hold up sums, failures cost work since a checkpoint.

Events of a step are the moments at which a bucket is ready on every rank and at which the ring is free; of a run, steps,
checkpoints and failures. Everything random comes from one seed.
"""

import heapq
import math
import random
from dataclasses import dataclass

from plan.cost import all_reduce, buckets, step

SLOTS = 2  # sums at a time, as gloo's threads do them; they share the ring


def step_seconds(work, machine, chance):
    """One step with stragglers: every rank has a speed of its own, drawn anew."""
    plain = step(work, machine)
    slowest = 1.0
    if machine.spread > 0:
        slowest = max(math.exp(chance.gauss(0, machine.spread)) for _ in range(machine.ranks))
    compute, window = plain.compute * slowest, plain.window * slowest
    sizes = buckets(work)
    ready = [compute - window + window * (i + 1) / len(sizes) for i in range(len(sizes))]
    return ring_end(ready, [all_reduce(machine, size) for size in sizes]) + plain.gather + plain.update + plain.agree


def ring_end(ready, lengths):
    """When the last sum is done: they start in order, SLOTS at a time, and each gets its part of the ring."""
    now, next_one, done = 0.0, 0, 0.0
    running = []  # what is left of each, in seconds of the whole ring
    while next_one < len(ready) or running:
        if len(running) < SLOTS and next_one < len(ready) and ready[next_one] <= now:
            heapq.heappush(running, lengths[next_one])
            next_one += 1
            continue
        arrival = ready[next_one] if len(running) < SLOTS and next_one < len(ready) else math.inf
        finish = now + running[0] * len(running) if running else math.inf
        then = min(arrival, finish)
        passed = (then - now) / len(running) if running else 0.0
        running = [left - passed for left in running]
        heapq.heapify(running)
        now = then
        if running and running[0] <= 1e-12:
            heapq.heappop(running)
            done = now
    return max(done, ready[-1])


@dataclass(frozen=True)
class Outcome:
    seconds: float
    failures: int
    saves: int
    lost: float  # seconds of work that was done again
    goodput: float  # of all time, the share that went into steps that counted


def train(machine, seconds_of_steps, interval, chance):
    """Runs steps worth `seconds_of_steps` of work, saving after every `interval` seconds of it."""
    rate = machine.nodes / machine.node_mtbf
    clock = done = saved = lost = 0.0
    failures = saves = 0
    failure = clock + (chance.expovariate(rate) if rate > 0 else math.inf)
    while done < seconds_of_steps:
        until = min(seconds_of_steps, saved + interval)
        need = until - done + machine.save_delay
        if clock + need <= failure:
            clock += need
            done = saved = until
            saves += 1
            continue
        at_work = max(0.0, min(failure - clock, until - done))
        lost += done + at_work - saved
        clock = failure + machine.restart
        done = saved
        failures += 1
        failure = clock + chance.expovariate(rate)
        if clock > 1000 * seconds_of_steps:
            return Outcome(math.inf, failures, saves, lost, 0.0)
    return Outcome(clock, failures, saves, lost, seconds_of_steps / clock)


def young_daly(machine):
    """The interval that loses least, to first order: sqrt(2 x delay x time between failures)."""
    return math.sqrt(2 * machine.save_delay * machine.node_mtbf / machine.nodes)


def best_interval(machine, seconds_of_steps, seed, tries=20):
    """The interval with the best mean goodput, of a grid around Young and Daly's, and that goodput."""
    guess = young_daly(machine)
    best = (0.0, guess)
    for factor in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0):
        chance = random.Random(seed)  # the same failures for every interval
        goodput = sum(train(machine, seconds_of_steps, guess * factor, chance).goodput for _ in range(tries)) / tries
        best = max(best, (goodput, guess * factor))
    return best[1], best[0]
