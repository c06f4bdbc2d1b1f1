"""Differential fuzzing in batches of seeds: what was compared is added to results/reliability/differential.json after each,
so that a later call goes on with the next seed. A disagreement ends it."""

import json
import os
import subprocess
import sys
import time

BATCH = 1000


def run(program, problems, path):
    if not program.is_file():
        sys.exit(f"there is no program {program}; ./lattice fuzz --differential builds it")
    state = json.loads(path.read_text()) if path.is_file() else {
        "command": "./lattice fuzz --differential", "problems": 0, "tensors": 0, "skipped": 0, "largest_share_of_bound": 0,
        "seconds": 0, "isas": {}, "rules": {}, "disagreements": []}
    end = state["problems"] + problems
    while state["problems"] < end:
        count, began = min(BATCH, end - state["problems"]), time.monotonic()
        done = subprocess.run([program, "--first", str(state["problems"]), "--problems", str(count)], capture_output=True,
                              text=True)
        if done.returncode != 0:
            report = done.stdout.strip() or f"exit code {done.returncode}: {done.stderr.strip()[-2000:]}"
            print(report)
            state["disagreements"].append(report)
            write(path, state)
            return 1
        add(state, json.loads(done.stdout), time.monotonic() - began)
        write(path, state)
        print(f"{state['problems']:,} problems agree, {state['tensors']:,} tensors", file=sys.stderr, flush=True)
    print(f"{state['problems']:,} problems agree under {', '.join(state['isas'])} and the reference: {state['tensors']:,} tensors, "
          f"{state['skipped']:,} not comparable")
    return 0


def add(state, batch, seconds):
    for key in ("problems", "tensors", "skipped"):
        state[key] += batch[key]
    state["largest_share_of_bound"] = round(max(state["largest_share_of_bound"], batch["largest"]), 3)
    state["seconds"] = round(state["seconds"] + seconds, 1)
    for isa in batch["isas"]:
        state["isas"][isa] = state["isas"].get(isa, 0) + batch["problems"]
    for rule, count in batch["rules"].items():
        state["rules"][rule] = state["rules"].get(rule, 0) + count
    state["disagreements"] = []  # those of older code
    state["date"] = time.strftime("%Y-%m-%d", time.gmtime())


def write(path, state):
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".tmp{os.getpid()}")
    draft.write_text(json.dumps(state, indent=1) + "\n")
    os.replace(draft, path)
