"""What the benches share: timing, child processes, the limits of this machine, tables."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATHS = [str(ROOT / name) for name in ("python", "tests", "bench")]


def timed(function, *, budget, least=3, most=200):
    """Best and median seconds of function(), after one call to warm up, for about `budget` seconds."""
    function()
    times, end = [], time.perf_counter() + budget
    while len(times) < least or (time.perf_counter() < end and len(times) < most):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return dict(best=min(times), median=statistics.median(times), runs=len(times))


def worst_error(got, want):
    """The largest difference of two arrays, relative to the largest entry of `want`; inf where got has NaN."""
    scale = max(float(abs(want).max()), 1e-30)
    error = float(abs(got - want).max()) / scale
    return error if error == error else float("inf")


class WrongResult(Exception):
    """A subject computed something else than the reference; its speed means nothing."""


def gate(name, got, want, tolerance):
    """The worst relative error over the named arrays; WrongResult beyond the tolerance."""
    errors = {key: worst_error(got[key], want[key]) for key in want}
    worst = max(errors, key=errors.get)
    if not errors[worst] <= tolerance:
        raise WrongResult(f"{name}: {worst} is off by {errors[worst]:.2e} (allowed {tolerance:.0e})")
    return errors[worst]


def run_child(script, job, *, threads, timeout=600):
    """Runs a script with the job as JSON on stdin and returns the JSON it prints last.

    The child gets `threads` CPUs and as many threads, whatever library it uses. A failure comes back as
    {"error": text}, with "wrong": True when the script says that a result was wrong.
    """
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), JAX_PLATFORMS="cpu",
               PYTHONPATH=os.pathsep.join(PATHS))
    try:
        done = subprocess.run([sys.executable, str(script)], input=json.dumps(dict(job, threads=threads)), text=True,
                              capture_output=True, env=env, timeout=timeout,
                              preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    except subprocess.TimeoutExpired:
        return dict(error=f"took longer than {timeout} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        return json.loads(lines[-1])
    return dict(error=(done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])


def child_main(work):
    """The other side of run_child: work(job) returns what is printed."""
    job = json.loads(sys.stdin.read())
    try:
        result = work(job)
    except WrongResult as wrong:
        result = dict(error=str(wrong), wrong=True)
    print(json.dumps(result))


def machine(threads):
    """Clock, multiply-adds and L1 bytes per cycle of one core, from lattice_clock; and the CPU's name."""
    program = ROOT / "build" / "release" / "bin" / "lattice_clock"
    if not program.exists():
        sys.exit(f"{program} is not built; run ./lattice setup")
    done = subprocess.run([program, str(threads)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return dict(json.loads(done.stdout), cpu=names[0] if names else "unknown", load_average=os.getloadavg()[0])


def describe(machine_):
    text = (f"{machine_['cpu']}, {machine_['threads']} threads, {machine_['isa']}: {machine_['clock_ghz']:.2f} GHz, "
            f"{machine_['fma_per_cycle']:.1f} float32 multiply-adds, {machine_['l1_load_bytes_per_cycle']:.0f} bytes "
            f"loaded or {machine_['l1_store_bytes_per_cycle']:.0f} stored in L1 per cycle and core")
    if machine_["load_average"] > 0.5:
        text += f"\nOther programs are running (load average {machine_['load_average']:.1f}): figures will be low."
    return text


def table(header, rows):
    """Rows of text in columns, the first flush left and the others flush right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [str(cell).rjust(width) for cell, width in zip(row, widths)]
        lines.append("  ".join([str(row[0]).ljust(widths[0]), *cells[1:]]).rstrip())
    return "\n".join(lines)


def thread_counts(text):
    """A type of --threads for benches that compare several: "1,2,4"."""
    return [int(word) for word in text.split(",")]


def arguments(description, example, *, threads=int):
    name = Path(sys.argv[0]).resolve().parent.name  # bench/<name>/bench.py
    parser = argparse.ArgumentParser(prog=f"./lattice bench {name}", description=description, epilog=f"Example: {example}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    several = ", or several numbers, e.g. 1,2,4: the last is that of the tables, and all are compared" if threads is not int else ""
    parser.add_argument("--threads", type=threads, default=str(min(2, len(os.sched_getaffinity(0)))),
                        help=f"threads and CPUs of every subject (default 2){several}")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE",
                        help="write the figures as JSON to FILE; without one, or with -, to stdout instead of the tables")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and repetitions")
    return parser


def parse(parser):
    options = parser.parse_args()
    available = len(os.sched_getaffinity(0))
    for count in options.threads if isinstance(options.threads, list) else [options.threads]:
        if not 1 <= count <= available:
            parser.error(f"--threads must be between 1 and {available}, the CPUs of this process; got {count}")
    return options


class Runner:
    """A bench program of build/release/bin: `forwarded` are its options and what they say, `quick` their values
    with --quick, `config` the configuration without --config or --model."""

    def __init__(self, program, config, forwarded, quick):
        self.program, self.config, self.forwarded, self.quick = program, config, forwarded, quick

    def add_options(self, parser):
        parser.add_argument("--config", help=f"untrained model of this configuration (default configs/{self.config})")
        parser.add_argument("--model", help="run directory or checkpoint, instead of --config")
        for name, text in self.forwarded.items():
            parser.add_argument(f"--{name}", help=text)

    def figures(self, options, more=()):
        """What it prints as JSON; ends this program with its exit code when it fails."""
        values = {name: getattr(options, name) for name in ("config", "model", *self.forwarded)}
        if options.quick:
            values = {name: value or self.quick.get(name) for name, value in values.items()}
        if not options.model and not options.config:
            values["config"] = str(ROOT / "configs" / self.config)
        command = [ROOT / "build" / "release" / "bin" / self.program, "--threads", str(options.threads), "--json", *more]
        command += [word for name, value in values.items() if value for word in (f"--{name}", value)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(done.returncode)
        return json.loads(done.stdout)


def use_threads(threads):
    """Gives this process so many CPUs and torch as many threads. Before torch is imported: its pools are sized by
    what they find."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


class Output:
    """Text for people and JSON for programs; with --json - stdout is JSON alone and the text goes to stderr."""

    def __init__(self, json_file):
        self.json_file = json_file
        self.stream = sys.stderr if json_file == "-" else sys.stdout

    def say(self, text=""):
        print(text, file=self.stream, flush=True)

    def progress(self, text):
        """One line on stderr that is rewritten on a terminal; an empty text ends it."""
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif text:
            print(text, file=sys.stderr, flush=True)

    def draw(self, file, figure):
        """Draws a figure (src/plot/figure_json.h) with the program that draws all others."""
        program = ROOT / "build" / "release" / "bin" / "lattice-run"
        subprocess.run([program, "plot", "-", "--out", file], input=json.dumps(figure), text=True, check=True,
                       stdout=subprocess.DEVNULL)
        self.say(f"written: {file}")

    def finish(self, figures):
        if self.json_file == "-":
            print(json.dumps(figures, indent=1))
        elif self.json_file:
            Path(self.json_file).write_text(json.dumps(figures, indent=1) + "\n")
            self.say(f"\nwritten: {self.json_file}")
