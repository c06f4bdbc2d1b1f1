"""Processes that train together, beside one process with as many threads, and beside PyTorch's DistributedDataParallel.

    ./lattice bench distributed                         110m, steps of 2,048 tokens in 8 sequences
    ./lattice bench distributed --seq-len 1024          steps of 8,192 tokens
    ./lattice bench distributed --timeline results/distributed
    ./lattice bench distributed --quick                 a small model, under a minute

Every subject takes the same steps: one process with --threads threads; as many ranks of one thread that divide the
sequences (data parallel); as many that share each of them, a micro-batch a sequence (sequence parallel); and the same
model from Python under DistributedDataParallel, whose engine is c10d::Reducer. Rounds alternate between the subjects; a
figure is the best step of all rounds, because whatever else runs can only make one slower.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import PATHS, ROOT, Output, arguments, parse, table  # noqa: E402

PROGRAM = ROOT / "build" / "release" / "bin" / "lattice"
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")
ROWS = 8  # sequences of a step, each a micro-batch
SUBJECTS = {"one": "one process", "data": "data parallel", "sequence": "sequence parallel", "ddp": "DistributedDataParallel"}
REFERENCE = {"data parallel": "one process", "sequence parallel": "data parallel", "DistributedDataParallel": "one process"}
QUICK = ["model.width=256", "model.layers=4", "model.heads=4", "model.vocab_size=2048"]


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    return clean | {"PYTHONPATH": os.pathsep.join(PATHS)} | {name: str(value) for name, value in more.items()}


def settings(options):
    chosen = [f"train.seq_len={options.seq_len}", f"train.batch_tokens={ROWS * options.seq_len}", "train.micro_batch=1",
              f"train.steps={options.steps + 1}", "train.warmup=1", "train.log_every=1", "train.eval_every=0", "train.save_every=0",
              "train.precision=fp32", "train.spike=off", "data.tokenizer=bytes", "data.valid_fraction=0"]
    return chosen + (QUICK if options.quick else ["model.vocab_size=32000"])


def text_in(directory):
    file = Path(directory) / "text.txt"
    if not file.exists():
        file.write_text("".join(f"line {i} of a text that is long enough for some steps, and says {i * i % 97}\n" for i in range(9000)))
    return file


def train(options, directory, *words, run="run"):
    """Seconds of each step but the first, by the program's own metrics; the run stays in the directory."""
    out = Path(directory) / run
    command = [PROGRAM, "train", "--data", text_in(directory), "--out", out, *words]
    command += [word for one in settings(options) for word in ("--set", one)]
    command += [] if options.quick else ["--config", options.config]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment())
    if done.returncode != 0:
        sys.exit(f"[bench distributed] {' '.join(map(str, words))} failed: {done.stderr.strip()}")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [ROWS * options.seq_len / line["tokens_per_s"] for line in lines if "tokens_per_s" in line][1:]


def in_python(options):
    """The same model under DistributedDataParallel: seconds of each step but the first, by its slowest rank."""
    job = dict(config=None if options.quick else str(options.config), rows=ROWS, seq_len=options.seq_len, steps=options.steps + 1,
               overrides=QUICK if options.quick else ["model.vocab_size=32000"])
    with tempfile.TemporaryDirectory(prefix="lattice-ddp-") as directory:
        ranks = [subprocess.Popen([sys.executable, Path(__file__).with_name("ddp_step.py"), f"{directory}/store"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment(RANK=rank, WORLD_SIZE=options.threads, OMP_NUM_THREADS=1))
                 for rank in range(options.threads)]
        for rank in ranks:
            rank.stdin.write(json.dumps(job))
            rank.stdin.close()
            rank.stdin = None
        ends = [(*rank.communicate(), rank.returncode) for rank in ranks]
    for _, err, code in ends:
        if code != 0:
            sys.exit(f"[bench distributed] DistributedDataParallel failed: {err.strip().splitlines()[-1]}")
    return [max(times) for times in zip(*(json.loads(out) for out, _, _ in ends))][1:]


def merged(run, ranks):
    """The trace events of all ranks, with times from the first on."""
    events = [event for rank in range(ranks) for event in json.loads((run / f"timeline-{rank}.json").read_text())["traceEvents"]]
    first = min(event["ts"] for event in events if "ts" in event)
    return [dict(event, ts=event["ts"] - first) if "ts" in event else event for event in events]


def covered(spans):
    """Seconds that are in some of the spans, [begin, end)."""
    total, until = 0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def spans(events, rank, name):
    return [(event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6) for event in events
            if event["pid"] == rank and event["name"] == name and "dur" in event]


def communication(events, rank):
    """How long a rank's gradients were on their way, and for how much of that its work stood still."""
    sums, waits, gather = (covered(spans(events, rank, name)) for name in ("sum", "wait for sums", "gather weights"))
    return dict(rank=rank, sums_s=sums, waits_s=waits, hidden=1 - waits / sums if sums > 0 else 0, gather_s=gather)


def last_step(events):
    """The spans from the update before the last one on, as rows of a figure."""
    updates = sorted(event["ts"] for event in events if event["name"] == "update" and event["pid"] == 0)
    begin = updates[-2] if len(updates) > 1 else 0
    lanes, rows, bars = ["work", "network"], [], []
    for rank in sorted({event["pid"] for event in events}):
        for lane, name in enumerate(lanes):
            shown = [event for event in events if event["pid"] == rank and event["tid"] == lane and "dur" in event and event["ts"] >= begin]
            if not shown:
                continue
            rows.append(f"rank {rank}, {name}")
            bars += [{"row": len(rows) - 1, "name": event["name"], "from": (event["ts"] - begin) / 1e6,
                      "to": (event["ts"] + event["dur"] - begin) / 1e6} for event in shown]
    return rows, bars


def draw(output, directory, name, title, events):
    rows, bars = last_step(events)
    output.draw(directory / f"{name}.svg", {"kind": "spans", "title": title, "x_label": "seconds", "rows": rows, "spans": bars})
    (directory / f"{name}.json").write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n")
    output.say(f"written: {directory / f'{name}.json'}")


def main():
    parser = arguments(__doc__, "./lattice bench distributed --quick")
    parser.add_argument("--config", default=str(ROOT / "configs" / "110m.toml"))
    parser.add_argument("--seq-len", type=int, help="tokens of each of the 8 sequences of a step (default 256)")
    parser.add_argument("--steps", type=int, help="measured steps of a subject in a round (default 1)")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help=f"some of {', '.join(SUBJECTS)} (default all)")
    parser.add_argument("--timeline", metavar="DIR", help="write traces (chrome://tracing) and pictures of the last step there")
    options = parse(parser)
    if options.threads < 2:
        parser.error("two threads at least: with one there is nothing to divide")
    wanted = options.subjects.split(",")
    if not set(wanted) <= set(SUBJECTS):
        parser.error(f"--subjects must be of {', '.join(SUBJECTS)}, got {options.subjects}")
    options.seq_len = options.seq_len or (128 if options.quick else 256)
    options.steps = options.steps or (4 if options.quick else 1)
    output = Output(options.json)
    ranks = ("--ranks", options.threads, "--threads", 1, "--timeline")
    subjects = {"one process": ("--threads", options.threads), "data parallel": ranks,
                "sequence parallel": (*ranks, "--set", f"train.sequence_ranks={options.threads}")}
    times = {name: [] for key, name in SUBJECTS.items() if key in wanted}
    traces = {}
    for round_ in range(options.rounds):
        for name in times:
            output.progress(f"round {round_ + 1} of {options.rounds}: {name}")
            with tempfile.TemporaryDirectory(prefix="lattice-bench-") as directory:
                times[name] += train(options, directory, *subjects[name]) if name in subjects else in_python(options)
                if name in subjects and "--timeline" in subjects[name]:
                    traces[name] = merged(Path(directory) / "run", options.threads)
    output.progress("")

    tokens = ROWS * options.seq_len
    rate = {name: tokens / min(all_) for name, all_ in times.items()}
    reference = {name: to for name, to in REFERENCE.items() if name in rate and to in rate}
    output.say(f"{'a small model' if options.quick else Path(options.config).stem}, {ROWS} sequences of {options.seq_len} tokens a step, "
               f"{options.threads} threads or ranks, load average {os.getloadavg()[0]:.1f}\n")
    output.say(table(["subject", "s a step, best", "worst", "tokens/s", "ratio", "to"],
                     [[name, f"{min(times[name]):.2f}", f"{max(times[name]):.2f}", f"{rate[name]:.0f}",
                       f"{rate[name] / rate[reference[name]]:.3f}" if name in reference else "", reference.get(name, "")] for name in times]))
    hidden = [communication(traces["data parallel"], rank) for rank in range(options.threads)] if "data parallel" in traces else []
    output.say()
    for one in hidden:
        output.say(f"rank {one['rank']}: gradients on their way {one['sums_s']:.2f} s, work stood still for {one['waits_s']:.2f} s: "
                   f"{one['hidden']:.0%} hidden; gathering weights {one['gather_s']:.2f} s")
    if options.timeline:
        directory = Path(options.timeline)
        directory.mkdir(parents=True, exist_ok=True)
        for name, events in traces.items():
            draw(output, directory, name.replace(" ", "-"), f"A step of {options.threads} ranks, {name}", events)
    output.finish(dict(model="quick" if options.quick else Path(options.config).stem, rows=ROWS, seq_len=options.seq_len, ranks=options.threads,
                       load_average=os.getloadavg()[0], seconds=times, tokens_per_s=rate, communication=hidden,
                       ratios={name: rate[name] / rate[to] for name, to in reference.items()}))


if __name__ == "__main__":
    main()
