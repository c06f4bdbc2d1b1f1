"""./lattice torture train, pack and reproduce: one work is killed, stopped, and refused its disk at random calls and moments,
and started again each time, in rounds until there were --faults. In the end of a round its result must be, bit for bit, that
of a work that nobody disturbed: weights and optimizer, metrics with no line lost or doubled, shards, tables. Everything
random comes from --seed. With --out the rounds that were made are kept in the file, and a second call goes on with them.
Exit code: 0 when that is so, 1 when it is not, 2 for wrong use.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from torture.crashes.faults import Round
from torture.crashes.program import Start
from torture.crashes.subjects import SUBJECTS

ROOT = Path(__file__).resolve().parents[3]
RELEASE = ROOT / "build" / "release"
MEMORY = Path("/dev/shm")
FAULTS = {"train": 1000, "pack": 300, "reproduce": 100}
QUICK = {"train": 25, "pack": 15, "reproduce": 6}
ROUND = {"train": 50, "pack": 12, "reproduce": 12}  # faults of a round, at most


def arguments(name, argv):
    parser = argparse.ArgumentParser(prog=f"./lattice torture {name}", description=__doc__.partition(": ")[2],
                                     epilog=f"Example: ./lattice torture {name} --quick")
    parser.add_argument("--faults", type=int, help=f"at least so many (default {FAULTS[name]}; with --quick {QUICK[name]})")
    parser.add_argument("--quick", action="store_true", help="a shorter work and few faults: less than a minute")
    parser.add_argument("--seed", type=int, default=1, help="of the choice and the moments of faults (default 1)")
    parser.add_argument("--out", type=Path, help="a JSON file for the result, and to go on from")
    parser.add_argument("--program", type=Path, default=RELEASE / "bin" / "lattice", help="the lattice to use")
    parser.add_argument("--preload", type=Path, default=RELEASE / "lib" / "liblattice_write_faults.so",
                        help="the library that disturbs it")
    parser.add_argument("--directory", type=Path, default=MEMORY if MEMORY.is_dir() else None,
                        help="where the works are (default: a disk in memory, because every fsync would wait for a real one)")
    parser.add_argument("--keep", action="store_true", help="keep the directory of a round that went wrong")
    options = parser.parse_args(argv)
    options.faults = (QUICK if options.quick else FAULTS)[name] if options.faults is None else options.faults
    if options.faults < 1:
        parser.error("--faults must be above 0")
    for path in (options.program, options.preload):
        if not path.is_file():
            parser.error(f"there is no {path}; build it, or pass --program and --preload")
    return options


class Record:
    """The rounds so far, in a file that is replaced in one step."""

    def __init__(self, path, about):
        self.path, self.about, self.rounds = path, about, []
        if path and path.exists():
            found = json.loads(path.read_text())
            if {key: found.get(key) for key in about} == about:
                self.rounds = found["rounds"]

    def faults(self):
        return sum((Counter(one["faults"]) for one in self.rounds), Counter())

    def add(self, entry):
        self.rounds.append(entry)
        if not self.path:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".part")
        temporary.write_text(json.dumps(self.summary() | {"rounds": self.rounds}, indent=1) + "\n")
        os.replace(temporary, self.path)

    def summary(self):
        kinds = self.faults()
        return self.about | {"faults": sum(kinds.values()), "by_kind": dict(kinds.most_common()),
                             "starts": sum(one["starts"] for one in self.rounds),
                             "seconds": round(sum(one["seconds"] for one in self.rounds), 1),
                             "load_average": round(os.getloadavg()[1], 1),
                             "problems": [problem for one in self.rounds for problem in one["problems"]]}


def make_whole(subject, options, directory):
    """The work that nobody disturbs."""
    (directory / "whole").mkdir()
    start = Start(subject.command(directory / "whole" / "work"), options.preload, directory / "whole" / "work", directory / "whole")
    code = start.end()
    if code != 0 or start.calls() == 0:
        sys.exit(f"the undisturbed work ended with {code} after {start.calls()} counted calls: {start.said()[-2000:]}")
    return directory / "whole" / "work"


def main(name, argv):
    options = arguments(name, argv)
    record = Record(options.out, {"command": f"./lattice torture {name} --faults {options.faults} --seed {options.seed}"
                                  + (" --quick" if options.quick else "")})
    directory = Path(tempfile.mkdtemp(prefix=f"lattice-torture-{name}-", dir=options.directory))
    subject = SUBJECTS[name](options.program, directory, options.quick)
    whole = make_whole(subject, options, directory)
    shown = sys.stdout.isatty()
    while (have := sum(record.faults().values())) < options.faults and not record.summary()["problems"]:
        number, begin = len(record.rounds), time.monotonic()
        place = directory / f"round-{number}"
        place.mkdir()
        one = Round(subject, options.preload, place, options.seed * 1_000_003 + number, min(ROUND[name], options.faults - have),
                    lambda kind: print(f"\r\033[K{kind}", end="", flush=True) if shown else None)
        one.run(whole)
        record.add({"round": number, "faults": dict(one.faults), "starts": one.starts,
                    "seconds": round(time.monotonic() - begin, 1), "problems": one.problems})
        print(f"{chr(13) if shown else ''}round {number + 1}: {sum(one.faults.values())} faults in {one.starts} starts, "
              f"{time.monotonic() - begin:.1f} s: {'; '.join(one.problems) or 'equal to the undisturbed one'}", flush=True)
        if not one.problems:
            shutil.rmtree(place)
    summary = record.summary()
    print(json.dumps(summary, indent=1))
    if options.keep and summary["problems"]:
        print(f"kept: {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if summary["problems"] else 0
