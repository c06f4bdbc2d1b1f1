"""Every memory side by side: ./lattice bench rules.

Speeds are million head-tokens per second (one head advancing one token), forward and forward+backward, each after
outputs and gradients agreed with a float64 oracle. Exit code 1 when a result is wrong; speed alone never fails.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), *(str(HERE.parents[1] / name) for name in ("python", "tests"))]

import measure  # noqa: E402  (needs the path)

HEADS, SLOTS, WIDTH = 12, 64, 64
LOOP_LENGTH = 256
GROWTH = ("softmax_attention", "lattice_dec", "deltanet")


def options_of():
    parser = measure.arguments(__doc__, "./lattice bench rules --svg rules.svg --json rules.json")
    parser.add_argument("--svg", metavar="FILE", help="draw the speeds")
    parser.add_argument("--peers", default="all", choices=("all", "none"),
                        help="none leaves out the PyTorch loop of DeltaNet")
    return measure.parse(parser)


def time_subject(subject, T, quick):
    import torch

    shape = dict(B=1, T=T, H=HEADS, M=SLOTS, D=WIDTH)
    inputs = {name: x.requires_grad_() for name, x in subject.inputs(**shape).items()}
    dy = torch.randn(1, T, HEADS, WIDTH)

    def forward():
        with torch.no_grad():
            subject.call(inputs)

    def both():
        torch.autograd.grad(subject.call(inputs)[0], tuple(inputs.values()), dy)

    timing = dict(budget=0.15 if quick else 0.6, least=2 if quick else 3)
    row = dict(title=subject.title, rule=subject.rule, memory=subject.memory["name"], compared=subject.compared, method="loop" if subject.loop else subject.method, T=T,
               state_bytes=subject.state_bytes(T, SLOTS, WIDTH))
    for phase, function in (("forward", forward), ("both", both)):
        timed = measure.timed(function, **timing)
        row[phase] = dict(timed, mega_head_tokens_per_s=T * HEADS / timed["best"] / 1e6)
    return row


def run(options, out):
    import report
    import subjects

    T = 512 if options.quick else 2048
    lengths = [length for length in (512, 1024, 2048, 4096, 8192) if length <= 4 * T]
    figures = dict(bench="rules", heads=HEADS, slots=SLOTS, width=WIDTH, machine=measure.machine(options.threads),
                   rows=[], growth=[], failures=[])
    out.say(measure.describe(figures["machine"]))
    todo = [(subject, T) for subject in subjects.memories()]
    if options.peers == "all":
        todo.append((subjects.loop_peer(), LOOP_LENGTH))
    right = {}
    for subject, length in todo:
        out.progress(subject.title)
        try:
            error = subject.judge()
        except measure.WrongResult as wrong:
            figures["failures"].append(str(wrong))
            continue
        figures["rows"].append(dict(time_subject(subject, length, options.quick), error=error))
        if subject.plain:
            right[subject.rule] = subject
    for rule in GROWTH:
        for length in lengths if rule in right else ():
            out.progress(f"{rule} T={length}")
            figures["growth"].append(time_subject(right[rule], length, options.quick))
    out.progress("")
    figures["summary"] = report.summary(figures["rows"])
    out.say(report.text(figures))
    if options.svg:
        import plot

        out.draw(options.svg, plot.speeds(figures))
        if figures["growth"]:
            grown = Path(options.svg)
            out.draw(grown.with_stem(grown.stem + "-growth"), plot.growth(figures))
    out.finish(figures)
    return 1 if figures["failures"] else 0


def main():
    options = options_of()
    measure.use_threads(options.threads)
    return run(options, measure.Output(options.json))


if __name__ == "__main__":
    sys.exit(main())
