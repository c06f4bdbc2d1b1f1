"""What a chunk approximation costs and buys on this CPU: ./lattice bench chunk.

Speeds of the exact recurrence, linear1, linear2 and the refined chunk in million head-tokens per second (one head
advancing one token), with the relative error of y against the exact recurrence in float64 beside each; then linear2
at C=64 against the same in JAX and PyTorch, after outputs and gradients of all agreed with a float64 reference.
Exit code 1 when a result is wrong or a peer fails; speed alone never fails.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCAN = HERE.parent / "scan"
sys.path[:0] = [str(HERE), str(HERE.parent), *(str(HERE.parents[1] / name) for name in ("python", "tests"))]

import measure  # noqa: E402  (needs the path)

HEADS, WIDTH, LENGTH, CHUNK = 12, 64, 2048, 64
CHUNKS, LENGTHS = (1, 4, 16, 64, 256), (512, 1024, 2048, 4096, 8192, 16384)
TOLERANCE = 1e-4
ASKED = 5
PEERS = {"jax_chunk": dict(title="JAX", module="jax_scan"), "torch_chunk": dict(title="PyTorch", module="torch_chunk")}


def options_of():
    parser = measure.arguments(__doc__, "./lattice bench chunk --svg chunk.svg --json chunk.json")
    parser.add_argument("--svg", metavar="FILE", help="draw speed and error over the chunk's length")
    parser.add_argument("--peers", default="all", choices=("all", "none"), help="none leaves out JAX and PyTorch")
    return measure.parse(parser)


def forms(quick):
    """(title, options of lattice.scan) of every form."""
    chunks = (4, 64) if quick else CHUNKS
    found = [("exact", {})]
    for method in ("linear1", "linear2"):
        found += [(method, dict(method=method, chunk=C)) for C in chunks]
    found += [(f"refined, {r} sweeps", dict(method="linear2", chunk=C, sweeps=r))
              for r in (2, 4) for C in chunks if C > 1]
    return found


def time_form(title, options, T, quick):
    import cases
    import lattice
    import torch

    shape = dict(B=1, T=T, H=HEADS, M=WIDTH, D=WIDTH)
    x = {name: torch.from_numpy(a).requires_grad_() for name, a in cases.inputs(**shape).items()}
    cotangents = [torch.from_numpy(a) for a in cases.cotangents(**shape).values()]

    def forward():
        with torch.no_grad():
            return lattice.scan(**x, **options)

    def both():
        torch.autograd.grad(lattice.scan(**x, **options), tuple(x.values()), cotangents)

    timing = dict(budget=0.1 if quick else 0.5, least=1 if options.get("sweeps", 1) > 1 else 3)
    row = dict(title=title, chunk=options.get("chunk", 1), sweeps=options.get("sweeps", 1), T=T)
    for phase, function in (("forward", forward), ("both", both)):
        timed = measure.timed(function, **timing)
        row[phase] = dict(timed, mega_head_tokens_per_s=T * HEADS / timed["best"] / 1e6)
    return row


def errors(todo):
    """The relative error of y of every form against the exact recurrence in float64."""
    import cases
    import lattice
    import torch

    x = {name: torch.from_numpy(a).double() for name, a in cases.inputs(1, 512, 2, WIDTH, WIDTH).items()}
    exact, _ = lattice.scan(**x)
    found = []
    for _, options in todo:
        y, _ = lattice.scan(**{name: a.float() for name, a in x.items()}, **options)
        found.append(float((y.double() - exact).norm() / exact.norm()))
    return found


def peers(options, out, figures):
    """linear2 at C=64 against its peers, each in a process of its own, behind the gate of bench scan."""
    with tempfile.TemporaryDirectory() as folder:
        shape = dict(B=1, T=160, H=2, M=WIDTH, D=WIDTH)
        file = str(Path(folder) / "linear2.npz")
        made = measure.run_child(SCAN / "reference.py", dict(shape=shape, chunk=CHUNK, file=file),
                                 threads=options.threads)
        if "error" in made:
            figures["failures"].append(f"reference: {made['error']}")
            return
        subjects = {"lattice": dict(title="lattice", module="lattice_chunk"), **PEERS}
        for name, subject in subjects.items():
            out.progress(f"linear2, C={CHUNK}: {subject['title']}")
            job = dict(name=name, module=subject["module"], options=dict(chunk=CHUNK),
                       gate=dict(shape=shape, file=file, tolerance=TOLERANCE), budget=0.3 if options.quick else 2,
                       least=2, shapes=[dict(shape, T=512 if options.quick else LENGTH, H=HEADS)])
            result = measure.run_child(SCAN / "worker.py", job, threads=options.threads)
            if "error" in result:
                figures["failures"].append(f"{name}: {result['error']}")
                continue
            timing = result["timings"][0]
            tokens = timing["shape"]["T"] * HEADS
            figures["peers"].append(dict(
                name=name, title=subject["title"], error=result["error_of_results"],
                **{phase: dict(timing[phase], mega_head_tokens_per_s=tokens / timing[phase]["best"] / 1e6)
                   for phase in ("forward", "both")}))


def run(options, out):
    import report

    figures = dict(bench="chunk", heads=HEADS, width=WIDTH, machine=measure.machine(options.threads), rows=[],
                   lengths=[], peers=[], failures=[])
    out.say(measure.describe(figures["machine"]))
    todo = forms(options.quick)
    T = 512 if options.quick else LENGTH
    for (title, form), error in zip(todo, errors(todo)):
        out.progress(f"{title} C={form.get('chunk', 1)}")
        figures["rows"].append(dict(time_form(title, form, T, options.quick), error=error))
    for title, form in (("exact", {}), *((m, dict(method=m, chunk=CHUNK)) for m in ("linear1", "linear2"))):
        for length in LENGTHS[:2] if options.quick else LENGTHS:
            out.progress(f"{title} T={length}")
            figures["lengths"].append(time_form(title, form, length, options.quick))
    if options.peers == "all":
        peers(options, out, figures)
    out.progress("")
    out.say(report.text(figures, ASKED))
    if options.svg:
        import plot

        out.draw(options.svg, plot.figure(figures))
    out.finish(figures)
    return 1 if figures["failures"] else 0


def main():
    options = options_of()
    measure.use_threads(options.threads)
    sys.path.append(str(SCAN))
    return run(options, measure.Output(options.json))


if __name__ == "__main__":
    sys.exit(main())
