"""The faults, and a round: one work that is disturbed, started again, and in the end compared."""

import errno
import os
import random
import shutil
import signal
import time
from collections import Counter

from torture.crashes.program import Start

ERRORS = {"full disk": errno.ENOSPC, "quota": errno.EDQUOT, "I/O error": errno.EIO, "permission lost": errno.EACCES,
          "read-only": errno.EROFS}
# What a program outlives, or ends at with an error, and what ends it, by how often they are chosen.
PASSING = {"full disk": 3, "quota": 1, "I/O error": 4, "permission lost": 2, "read-only": 2, "stop and continue": 2,
           "changed clock": 2}
ENDING = {"kill at a call": 5, "torn write": 4, "kill at a moment": 4, "disk gone for good": 1, "file size limit": 1}
SPOILING = 0.15  # of starts
HOUR = 3600
CLOCKS = (-10 * 365 * 24 * HOUR, -24 * HOUR, -HOUR, HOUR, 24 * HOUR, 10 * 365 * 24 * HOUR)


def pick(chance, kinds):
    return chance.choices(list(kinds), list(kinds.values()))[0]


class Round:
    """One work, disturbed by up to `most` faults."""

    def __init__(self, subject, library, directory, seed, most, log):
        self.subject, self.library, self.most, self.log = subject, library, most, log
        self.chance = random.Random(seed)
        self.out, self.scratch = directory / "work", directory
        self.faults, self.problems, self.spoilt, self.starts = Counter(), [], set(), 0

    def run(self, whole):
        while sum(self.faults.values()) < self.most and not self.problems and not self.subject.done(self.out):
            self.disturb()
        if not self.problems and not self.subject.done(self.out):
            self.start("")
        if not self.problems:
            self.problems += self.subject.compare(self.out, whole)
        return self.problems

    def count(self, kind):
        self.faults[kind] += 1
        self.log(kind)

    def disturb(self):
        """One start with up to three faults that may pass, and one that ends it."""
        if self.chance.random() < SPOILING and self.subject.spoil(self.out, self.chance, self.spoilt):
            self.count("spoilt checkpoint")
        call, planned, faults, stops, reasons = 0, [], [], [], set()
        for _ in range(self.chance.randrange(4)):
            call += self.chance.randrange(self.subject.calls_per_start // 3)
            kind = pick(self.chance, PASSING)
            if kind == "stop and continue":
                stops.append(call)
                continue
            planned.append((kind, call))
            if kind == "changed clock":
                faults.append(f"clock {call} {self.chance.choice(CLOCKS)}")
                continue
            length = self.chance.choice((1, 1, 1, 3, 30))
            faults.append(f"error {call} {length} {ERRORS[kind]}")
            reasons.add(ERRORS[kind])
            call += length
        self.finish(call + self.chance.randrange(self.subject.calls_per_start // 2), planned, faults, stops, reasons)

    def finish(self, call, planned, faults, stops, reasons):
        ending = pick(self.chance, ENDING)
        kill_at = limit = None
        if ending in ("kill at a call", "torn write"):
            faults.append(f"{'kill' if ending == 'kill at a call' else 'tear'} {call}")
        elif ending == "disk gone for good":
            reason = self.chance.choice(sorted(ERRORS.values()))
            faults.append(f"error {call} 1000000000 {reason}")
            reasons.add(reason)
        else:
            kill_at = call
            limit = self.chance.randrange(100_000) if ending == "file size limit" else None
        if limit is not None:
            reasons.add(errno.EFBIG)
        if kill_at is None:
            planned.append((ending, call))
        self.start(";".join(faults), planned, stops, kill_at, limit, reasons)

    def start(self, fault, planned=(), stops=(), kill_at=None, limit=None, reasons=()):
        """Starts the program and ends it. `planned`: kinds of faults with the calls at which they happen. `kill_at`: SIGKILL
        a moment after so many calls. `reasons`: the errors that the program may end with."""
        start = Start(self.subject.command(self.out), self.library, self.out, self.scratch, fault, limit)
        self.starts += 1
        for stop_at in stops:
            if start.await_calls(stop_at):
                start.signal(signal.SIGSTOP)
                time.sleep(self.chance.random() * 0.2)
                start.signal(signal.SIGCONT)
                self.count("stop and continue")
        if kill_at is not None and start.await_calls(kill_at):
            time.sleep(self.chance.random() * 0.03)
            start.kill()
        code = start.end()
        for kind, call in planned:
            if start.calls() > call:
                self.count(kind)
        if kill_at is not None and code == -signal.SIGKILL:
            self.count("kill at a moment")
        if limit is not None and (code == 1 or os.strerror(errno.EFBIG) in start.said()):
            self.count("file size limit")
        may_be_killed = kill_at is not None or "kill" in fault or "tear" in fault
        self.judge(start, fault, code, (0, *([1] if reasons else []), *([-signal.SIGKILL] if may_be_killed else [])), reasons)

    def judge(self, start, fault, code, expected, reasons):
        said = start.said()
        where = f"start {self.starts} with '{fault}'"
        if code is None:
            self.problems.append(f"{where}: did not end: {said[-500:]}")
        elif code not in expected:
            self.problems.append(f"{where}: exit code {code}: {said[-800:]}")
        elif code == 1 and not any(os.strerror(reason) in said for reason in reasons):
            self.problems.append(f"{where}: ended with another reason than the fault's: {said[-800:]}")

    def clear(self):
        shutil.rmtree(self.out, ignore_errors=True)
