"""The exact Lattice recurrence against its peers: ./lattice bench scan.

Every subject runs in a process of its own, one after the other, and is timed only after its outputs and gradients
agreed with a float64 reference (bench/scan/reference.py). Speeds are million head-tokens per second: one head
advancing one token. Exit code 1 when a result is wrong or a subject fails; speed alone never fails.
"""

import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import cores  # noqa: E402  (needs the path)
import measure  # noqa: E402
import report  # noqa: E402

HEADS, WIDTH, LENGTH, CHUNK = 12, 64, 2048, 64
# Relative to the largest entry. The subjects are at 2e-6 to 6e-6: rounding of float32 over 160 tokens.
TOLERANCE = 1e-4
# `length`: fewer tokens where 2048 need more memory than there may be (the loop took 9 GB with one sequence).
PEERS = {
    "jax_exact": dict(title="the paper's listing in JAX, exact (C=1)", module="jax_scan", options=dict(chunk=1),
                      length={4: 512}),
    "jax_chunk": dict(title="the paper's listing in JAX, chunks (C=64)", module="jax_scan",
                      options=dict(chunk=CHUNK)),
    "torch_loop": dict(title="PyTorch loop with autograd", module="torch_loop", options={}, length={4: 512}),
    "torch_chunk": dict(title="PyTorch, chunk form (C=64)", module="torch_chunk", options=dict(chunk=CHUNK)),
}
OTHER_SHAPES = ((128, 128), (16, 64))


def shape(B, T, H=HEADS, M=WIDTH, D=WIDTH):
    return dict(B=B, T=T, H=H, M=M, D=D)


class Bench:
    """Runs subjects; collects what went wrong."""

    def __init__(self, options, folder, out):
        self.options, self.folder, self.out = options, folder, out
        self.failures, self.began = [], time.perf_counter()

    def child(self, title, script, job, threads=None):
        self.out.progress(f"{time.perf_counter() - self.began:.0f} s: {title}")
        result = measure.run_child(HERE / script, job, threads=threads or self.options.threads)
        self.out.progress("")
        if "error" in result:
            self.failures.append(f"{title}: {result['error']}")
            return None
        return result

    def reference(self, chunk, M, D):
        """The file of the references and its shape: a few blocks and chunks long, the last ones cut short."""
        judged = shape(1, 160, 3, M, D)
        file = self.folder / f"reference-{chunk}-{M}-{D}.npz"
        if not file.exists():
            self.child("the reference", "reference.py", dict(shape=judged, chunk=chunk, file=str(file)))
        return dict(shape=judged, file=str(file), tolerance=TOLERANCE)

    def subject(self, title, module, options, shapes, threads=None):
        reference = self.reference(options.get("chunk", 1), shapes[0]["M"], shapes[0]["D"])
        quick = self.options.quick
        job = dict(name=title, module=module, options=options, gate=reference, shapes=shapes,
                   budget=0.3 if quick else 1.0, least=2 if quick else 3)
        result = self.child(title, "worker.py", job, threads)
        return [] if result is None else [dict(timing, title=title, error=result["error_of_results"])
                                          for timing in result["timings"]]

    def lattice(self, shapes, threads=None):
        return self.subject("Lattice, exact", "lattice_scan", {}, shapes, threads)

    def by_threads(self, counts):
        """One sequence with each number of threads: [(threads, row)]."""
        return [(count, row) for count in counts for row in self.lattice([shape(1, LENGTH)], count)]

    def peer(self, name, batches):
        peer = PEERS[name]
        lengths = peer.get("length", {})
        shapes = [shape(B, lengths.get(B, LENGTH))
                  for B in batches]
        rows = self.subject(peer["title"], peer["module"], peer["options"], shapes)
        return [dict(row, peer=name) for row in rows]


def peers_of(text):
    names = {"all": list(PEERS), "none": []}.get(text, text.split(","))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise ValueError(f"unknown peer '{unknown[0]}'; there are: none, all, {', '.join(PEERS)}")
    return names


def options_of():
    parser = measure.arguments(__doc__, "./lattice bench scan --peers jax_exact,torch_chunk --json scan.json",
                               threads=measure.thread_counts)
    parser.add_argument("--peers", default="all", metavar="LIST",
                        help=f"all (default), none, or a comma-separated list of: {', '.join(PEERS)}")
    options = measure.parse(parser)
    options.compared, options.threads = options.threads, options.threads[-1]
    try:
        options.peers = peers_of(options.peers)
    except ValueError as error:
        parser.error(str(error))
    return options


def run(options, folder, out):
    bench = Bench(options, folder, out)
    batches = (1,) if options.quick else (1, 4)
    figures = dict(bench="scan", heads=HEADS, machine=measure.machine(options.threads))
    out.say(measure.describe(figures["machine"]))
    rows = bench.lattice([shape(B, LENGTH) for B in batches])
    own = len(rows)
    for name in options.peers:
        rows += bench.peer(name, batches)
    figures["rows"] = [report.with_rates(row, figures["machine"], own=i < own) for i, row in enumerate(rows)]
    out.say(report.rows_table(figures["rows"]))
    figures["ratios"] = report.ratios(figures["rows"])
    out.say(report.ratio_lines(figures["ratios"]))
    if len(options.compared) > 1:
        compared = bench.by_threads(options.compared[:-1]) + [(options.threads, row) for row in rows[:min(own, 1)]]
        if compared:
            figures["threads"] = cores.compare(compared)
            out.say(cores.lines(figures["threads"]))
    if not options.quick:
        shapes = [bench.lattice([shape(1, LENGTH * WIDTH * WIDTH // max(M * D, WIDTH * WIDTH), M=M, D=D)])
                  for M, D in OTHER_SHAPES]
        figures["shapes"] = report.shapes(figures["rows"], sum(shapes, []), figures["machine"])
        figures["long"] = bench.child("a long sequence", "long_sequence.py", dict(shape=shape(1, 65536, H=4)))
        out.say(report.shape_lines(figures["shapes"]))
        out.say(report.long_line(figures["long"]))
    figures["failures"] = bench.failures
    for failure in bench.failures:
        out.say(f"FAILED {failure}")
    out.finish(figures)
    return 1 if bench.failures else 0


def main():
    options = options_of()
    with tempfile.TemporaryDirectory() as folder:
        return run(options, Path(folder), measure.Output(options.json))


if __name__ == "__main__":
    sys.exit(main())
