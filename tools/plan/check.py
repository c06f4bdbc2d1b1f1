"""The model of cost beside trainings on this host."""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from plan import cost

# A model whose step takes a second or less on one core, and whose gradients fill several buckets.
SETTINGS = ("model.width=512", "model.layers=4", "model.heads=8", "train.seq_len=256", "train.batch_tokens=1024", "train.micro_batch=1",
            "train.steps=8", "train.warmup=2", "train.log_every=1", "train.save_every=0", "train.eval_every=0", "train.precision=fp32")
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def words():
    return [word for one in SETTINGS for word in ("--set", one)]


def step_time(program, ranks):
    """The median seconds of a step, without the first three."""
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHER} | {"OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="lattice-plan-") as directory:
        text = Path(directory) / "text.txt"
        text.write_text("".join(f"line {i} of a text that is long enough for a few steps, and says {i * i % 97}\n" for i in range(3000)))
        subprocess.run([program, "train", "--config", "tiny", "--data", text, "--out", f"{directory}/run", "--ranks", str(ranks), "--threads", "1", *words()],
                       check=True, stdout=subprocess.DEVNULL, env=environment)
        lines = [json.loads(line) for line in Path(directory, "run/metrics.jsonl").read_text().splitlines()]
    return statistics.median(1024 / line["tokens_per_s"] for line in lines[3:] if "tokens_per_s" in line)


def work_of(program):
    inspected = subprocess.run([program, "inspect", "--config", "tiny", "--json", "--set", "model.vocab_size=257", *words()], capture_output=True, text=True, check=True)
    facts = json.loads(inspected.stdout)
    return cost.Work("check", facts["parameters"]["total"], facts["training_flops_per_token"], 1024, 256, 0)


def measured_rate(program):
    """FLOP/s that training sustains on one rank of one thread, here."""
    work = work_of(program)
    return work.batch_tokens * work.flops_per_token / step_time(program, 1)


def compare(program):
    """What the model says of 1, 2 and 4 ranks on this host, from the rate of one, and what was measured."""
    work, rows, rate = work_of(program), [], None
    for ranks in (1, 2, 4):
        measured = step_time(program, ranks)
        rate = rate or work.batch_tokens * work.flops_per_token / measured
        share = min(1.0, (os.cpu_count() or 1) / ranks)  # ranks beyond the cores take turns
        machine = cost.Machine(1, ranks, rate * share, local_bytes=2e9 * share)
        rows.append({"ranks": ranks, "measured_s": measured, "predicted_s": cost.step(work, machine).seconds})
    return rows
