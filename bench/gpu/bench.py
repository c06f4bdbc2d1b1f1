"""What limits the GPU kernels, on paper and without a GPU: ./lattice bench gpu.

The kernels of lattice_dec are compiled for an A100, an H100 and a B200. Instructions are counted in the machine code,
cycles by issuing them in order with the stalls and scoreboards that ptxas wrote and textbook latencies. Nothing here is
measured; `python -m lattice.selftest` measures, on a machine with a GPU. With nvcc the experiment with one warp a head
(tests/cuda/one_warp.cu) is counted as well. Tables are those of docs/gpu.md.
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[1] / name) for name in ("python", "tests"))]

LIMITS = ("issue", "float", "exchange", "latency", "memory")


def options_of():
    parser = argparse.ArgumentParser(prog="./lattice bench gpu", description=__doc__,
                                     epilog="Example: ./lattice bench gpu --json results/gpu/model.json",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--read", type=Path, metavar="FILE", help="print the tables of such a file, compile nothing")
    parser.add_argument("--shapes", type=Path, metavar="FILE", help="instead: compile every size for every target, and write what "
                        "each needs to FILE, which an interrupted run goes on with")
    return parser.parse_args()


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _row(card, what, row):
    kinds = row["kinds"]
    counted = " / ".join(str(kinds.get(kind, 0)) for kind in ("float", "shuffle", "barrier"))
    return [f"{card}, {what}", row["registers"], f"{row['blocks']} x {row['warps']}", f"{row['instructions']:,}", counted,
            f"{row['cycles']:,}", *(f"{row['rates'][name]:.0f}" for name in LIMITS), row["limit"]]


def loops(cards):
    """What each loop over tokens needs, and head-tokens by each limit."""
    header = ["per token and head", "registers", "blocks x warps", "instructions a warp", "float / shuffle / barrier",
              "cycles", *LIMITS, "limit"]
    rows = []
    for card in cards:
        rows += [_row(card["card"], row["name"], row) for row in card["loops"]]
        if "one_warp" in card:
            rows.append(_row(card["card"], "forward, one warp", card["one_warp"]))
    return table(header, rows)


def speeds(cards):
    header = ["M head-tokens/s, on paper", "forward", "forward+backward", "one warp: forward", "with it forward+backward"]
    rows = []
    for card in cards:
        one = [card["one_warp"]["rate"], card["one_warp_both"]] if "one_warp" in card else []
        figures = [f"{rate:.0f}" for rate in (card["forward"], card["both"], *one)]
        rows.append([card["card"], *figures, *[""] * (4 - len(figures))])
    return table(header, rows)


def main():
    options = options_of()
    if options.read:
        cards = json.loads(options.read.read_text())["cards"]
    else:
        try:
            import model
            import shapes
        except ImportError as error:
            sys.exit(f"bench gpu needs Triton, which cannot be imported ({error}); run .venv/bin/pip install -r "
                     "requirements-gpu.txt")
        if options.shapes:
            return print(shapes.summary(shapes.fill(options.shapes)))
        cards = [model.model(name) for name in model.CARDS]
    print(loops(cards), speeds(cards), sep="\n\n")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(dict(command="./lattice bench gpu", cards=cards), indent=1) + "\n")


if __name__ == "__main__":
    main()
