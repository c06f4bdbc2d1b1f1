"""./lattice torture ranks: ranks of a training are killed, stopped and cut off at random moments.

Three ranks train a tiny model on hosts of their own (network namespaces; torture/lan.py). After every fault that a rank
cannot outlive, the others must end within 10 s with a line that says who is lost; all are then started again with
--resume auto. At the end the weights must be, bit for bit, those of a training without faults. Exit code: 0 when that
is so, 1 when it is not, 2 when there can be no such network here.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from torture.lan import Lan, why_not

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "bin" / "lattice"
RANKS = 3
PATIENCE = 5  # seconds, of the ranks
HEALED = 3.0  # seconds for which a link is down or bad
SETTINGS = ("model.layers=1", "model.width=32", "train.seq_len=32", "train.batch_tokens=192", "train.micro_batch=1",
            "train.warmup=2", "train.save_every=10", "train.eval_every=0", "train.log_every=50", "train.precision=fp32")
# Those a rank does not outlive, and those that the network may get over.
FATAL = ("kill", "stop", "cut")
PASSING = ("link down and up", "5 % loss and 50 ms delay")


def words(text, out, steps):
    settings = [word for one in (*SETTINGS, f"train.steps={steps}") for word in ("--set", one)]
    return [str(PROGRAM), "train", "--data", str(text), "--out", str(out), "--resume", "auto", "--threads", "1", *settings]


def environment(**variables):
    return os.environ | {"OMP_NUM_THREADS": "1"} | {name: str(value) for name, value in variables.items()}


def write_text(path):
    parts = "the memory holds a fixed number of slots and each is updated only with what it does not know yet".split()
    path.write_text("".join(f"{parts[i % 19]} {parts[i * i % 19]} {parts[i * 7 % 19]} {i % 10}\n" for i in range(400)))
    return path


def digest(run, steps):
    return hashlib.sha256((run / f"checkpoints/step-{steps}/model.safetensors").read_bytes()).hexdigest()


class Ranks:
    """One start of all ranks."""

    def __init__(self, lan, command, attempt):
        port = 29000 + attempt
        self.processes = [
            subprocess.Popen([*host.prefix, *command, "--fault-timeout", str(PATIENCE)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True,
                             env=environment(RANK=rank, WORLD_SIZE=RANKS, MASTER_ADDR=lan.hosts[0].address, MASTER_PORT=port))
            for rank, host in enumerate(lan.hosts)]
        self.said = [[] for _ in self.processes]  # (moment, line) of each
        self.readers = [threading.Thread(target=self._listen, args=one, daemon=True) for one in zip(self.processes, self.said)]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _listen(process, said):
        for line in process.stderr:
            said.append((time.monotonic(), line.strip()))

    def naming(self, rank, lost):
        """The moment at which a rank has named the lost one; None: not yet."""
        return next((moment for moment, line in self.said[rank] if f"rank {lost} on host" in line), None)

    def running(self):
        return [rank for rank, process in enumerate(self.processes) if process.poll() is None]

    def end(self):
        """Their last words, by rank."""
        for process in self.processes:
            process.kill()
        for process, reader in zip(self.processes, self.readers):
            process.wait()
            reader.join()
            process.stderr.close()
        return [said[-1][1] if said else "" for said in self.said]


class Torture:
    def __init__(self, options, directory, lan):
        self.options, self.lan = options, lan
        self.random = random.Random(options.seed)
        self.run = directory / "run"
        self.command = words(write_text(directory / "text.txt"), self.run, options.steps)
        self.faults, self.broken, self.starts = [], [], 0

    def step(self):
        latest = self.run / "checkpoints" / "latest"
        return int(os.readlink(latest).removeprefix("step-")) if latest.is_symlink() else 0

    def complain(self, what):
        self.broken.append(what)
        print("BROKEN:", what, flush=True)

    def to_the_end(self):
        while self.step() < self.options.steps and self.starts < 3 * self.options.faults + 10 and not self.broken:
            self.attempt()
        if len(self.faults) < self.options.faults:
            self.complain(f"only {len(self.faults)} faults before the last step; raise --steps")

    def attempt(self):
        for host in self.lan.hosts:
            host.heal()
        ranks, begin = Ranks(self.lan, self.command, self.starts), self.step()
        self.starts += 1
        try:
            while len(self.faults) < self.options.faults:
                if not self.advance(ranks, begin):
                    return
                time.sleep(self.random.random() * 0.5)
                if not self.inject(ranks):
                    return
                begin = self.step()
            self.advance(ranks, self.options.steps - 1)
            for process in ranks.processes:
                process.wait(timeout=60)
        finally:
            last = ranks.end()
            if self.options.verbose:
                print(last, flush=True)

    def advance(self, ranks, beyond):
        """Waits for a checkpoint beyond a step. False: a rank has ended before."""
        until = time.monotonic() + 600
        while self.step() <= beyond and time.monotonic() < until:
            if len(ranks.running()) < RANKS:
                return self.step() > beyond
            time.sleep(0.02)
        if self.step() <= beyond:
            self.complain(f"no checkpoint behind step {beyond} within 10 minutes")
        return self.step() > beyond

    def inject(self, ranks):
        """One fault. True when the ranks go on."""
        kind, rank = self.random.choice(FATAL + PASSING), self.random.randrange(RANKS)
        process, host, begin = ranks.processes[rank], self.lan.hosts[rank], time.monotonic()
        fault = {"fault": kind, "rank": rank, "step": self.step()}
        self.faults.append(fault)
        if kind in FATAL:
            # The program itself, not `ip netns exec`, which has become it.
            if kind == "kill":
                process.kill()
            elif kind == "stop":
                process.send_signal(signal.SIGSTOP)
            else:
                host.cut = True
            self.await_others(ranks, rank, begin, fault)
        elif kind == PASSING[0]:
            host.cut = True
            time.sleep(HEALED)
            host.heal()
        else:
            host.loss, host.delay = 0.05, 0.05
            time.sleep(HEALED)
            host.heal()
        print(json.dumps(fault), flush=True)
        return kind not in FATAL

    def await_others(self, ranks, lost, begin, fault):
        others = [rank for rank in range(RANKS) if rank != lost]
        while not all(ranks.naming(rank, lost) for rank in others) and time.monotonic() < begin + 60:
            time.sleep(0.02)
        for rank in others:
            if ranks.naming(rank, lost) is None:
                return self.complain(f"{fault}: rank {rank} does not name it: {ranks.said[rank]}")
        fault["noticed_s"] = round(max(ranks.naming(rank, lost) for rank in others) - begin, 2)
        if fault["noticed_s"] > self.options.bound:
            self.complain(f"{fault}: noticed too late")


def arguments(argv):
    parser = argparse.ArgumentParser(prog="./lattice torture ranks", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--faults", type=int, default=20, help="at least so many (default 20)")
    parser.add_argument("--steps", type=int, default=2000, help="of training (default 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice and the moments of faults (default 1)")
    parser.add_argument("--bound", type=float, default=10, help="seconds that a fault may go unnoticed (default 10); more on a "
                        "machine that is busy with other things")
    parser.add_argument("--out", type=Path, help="a JSON file for the result")
    parser.add_argument("--verbose", action="store_true", help="what ranks said last")
    return parser.parse_args(argv)


def main(argv):
    options = arguments(argv)
    missing = why_not()
    if missing:
        print(f"torture ranks: {missing}", file=sys.stderr)
        return 2
    directory = Path(tempfile.mkdtemp(prefix="lattice-ranks-"))
    try:
        text = write_text(directory / "text.txt")
        subprocess.run([*words(text, directory / "whole", options.steps), "--ranks", str(RANKS)], check=True,
                       stdout=subprocess.DEVNULL, env=environment())
        begin = time.monotonic()
        with Lan(RANKS, options.seed) as lan:
            torture = Torture(options, directory, lan)
            torture.to_the_end()
        if not torture.broken and digest(torture.run, options.steps) != digest(directory / "whole", options.steps):
            torture.complain("the weights are not those of a training without faults")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    noticed = [fault["noticed_s"] for fault in torture.faults if "noticed_s" in fault]
    result = {"command": f"./lattice torture ranks --faults {options.faults} --steps {options.steps} --seed {options.seed} --bound {options.bound:g}",
              "ranks": RANKS, "fault_timeout_s": PATIENCE, "bound_s": options.bound, "load_average": round(os.getloadavg()[1], 1), "faults": torture.faults, "starts": torture.starts,
              "slowest_notice_s": max(noticed, default=0), "seconds": round(time.monotonic() - begin, 1),
              "weights_equal": not torture.broken, "broken": torture.broken}
    print(json.dumps({name: value for name, value in result.items() if name != "faults"}, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if torture.broken else 0
