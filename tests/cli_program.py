"""Runs the program `lattice` of the release build, for the test_cli_* modules."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "bin" / "lattice"
TINY = ["model.layers=1", "model.width=32", "train.seq_len=64", "train.batch_tokens=256", "train.warmup=2",
        "train.steps=20", "train.log_every=1", "train.save_every=0", "train.eval_every=0", "train.precision=fp32"]


def run(*args, stdin=None, **options):
    command = [PROGRAM, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, input=stdin, **options)


def ok(*args, **options):
    result = run(*args, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def settings(*assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def train(text, out, *assignments, args=()):
    return ok("train", "--data", text, "--out", out, "--threads", 2, *settings(*TINY, *assignments), *args)


def metrics(run_directory):
    return [json.loads(line) for line in (run_directory / "metrics.jsonl").read_text().splitlines()]


def write_text(path, lines=400):
    words = "the memory holds a fixed number of slots and each is updated only with what it does not know yet".split()
    path.write_text("".join(f"{words[i % 19]} {words[i * i % 19]} {words[i * 7 % 19]} {i % 10}\n" for i in range(lines)))
    return path
