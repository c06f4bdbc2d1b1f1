"""The stored corpora: few small inputs that reach what all inputs together reach.

Files with names that people gave are seeds and stay. The others are named by libFuzzer (40 hexadecimal digits), and every
minimisation chooses them anew: first those that reach an edge nothing before them does, then those that reach it in
another number of times, the smaller ones first.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fuzz.campaign import clear
from fuzz.target import MOST_BYTES

MOST_INPUTS = 200
MOST_TOTAL_BYTES = 256 << 10


def store(target, folder, record):
    """Minimises what the target has found into `folder`, and the working set in the build tree with it."""
    with tempfile.TemporaryDirectory(prefix="lattice-corpus-") as scratch:
        merged, control = Path(scratch, "merged"), Path(scratch, "control")
        merged.mkdir()
        done = subprocess.run(target.command("-merge=1", f"-merge_control_file={control}", f"-max_len={MOST_BYTES}", merged,
                                             folder, target.found),
                              capture_output=True, text=True, errors="replace")
        if done.returncode != 0 or not control.is_file():
            raise RuntimeError(f"{target.program} -merge=1 failed:\n{done.stderr[-2000:]}")
        gains = read_gains(control.read_text())
        clear(target.found)
        for path in merged.iterdir():
            shutil.copyfile(path, target.found / path.name)
        for path in folder.iterdir():
            if is_found(path):
                path.unlink()
        for path in choose(gains, {entry.name: entry for entry in merged.iterdir()}):
            shutil.copyfile(path, folder / path.name)
    edges, features = target.coverage(folder)
    record.stored(target.name, len(list(folder.iterdir())), sum(path.stat().st_size for path in folder.iterdir()), edges,
                  features)


def is_found(path):
    return re.fullmatch(r"[0-9a-f]{40}", path.name) is not None


def read_gains(control):
    """{file name: (new edges, new features)} from a control file of -merge=1. Names of seeds are those that people gave."""
    lines = control.splitlines()
    count = int(lines[0])
    names = [Path(line).name for line in lines[2:2 + count]]
    gains = {name: [0, 0] for name in names}
    for line in lines[2 + count:]:
        kind, _, rest = line.partition(" ")
        number, *values = rest.split()
        if kind in ("COV", "FT"):
            gains[names[int(number)]][kind == "FT"] += len(values)
    return gains


def choose(gains, files):
    """The files to store: those named by libFuzzer with the largest gains, within the bounds."""
    best = sorted((path for name, path in files.items() if name in gains and is_found(path)),
                  key=lambda path: (gains[path.name][0] == 0, path.stat().st_size, path.name))
    chosen, size = [], 0
    for path in best:
        if len(chosen) < MOST_INPUTS and size + path.stat().st_size <= MOST_TOTAL_BYTES:
            chosen.append(path)
            size += path.stat().st_size
    return chosen
