"""What memories kept in bfloat16 between tokens would cost: ./lattice bench states.

Runs build/release/bin/lattice_bench_states: a text is read token by token by three sessions, whose memories stay float32,
are rounded to the nearest bfloat16 behind every token, or are rounded at random so that the mean is right. Prints the
perplexities, and how far the memories have moved away from those in float32 behind 1, 2, 4, ... tokens.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure  # noqa: E402  (needs the path)

PROGRAM = measure.ROOT / "build" / "release" / "bin" / "lattice_bench_states"


def options_of():
    parser = measure.arguments(__doc__, "./lattice bench states --model runs/book --data book.txt --tokens 16384")
    parser.add_argument("--model", required=True, help="run directory or checkpoint")
    parser.add_argument("--data", required=True, help="text; a shorter one is read again")
    parser.add_argument("--tokens", type=int, help="tokens to read (default 16384; 1024 with --quick)")
    parser.add_argument("--context", type=int, default=0, help="begin anew after so many tokens; 0: never")
    return measure.parse(parser)


def main():
    options = options_of()
    out = measure.Output(options.json)
    tokens = options.tokens or (1024 if options.quick else 16384)
    command = [PROGRAM, "--model", options.model, "--data", options.data, "--tokens", str(tokens), "--context",
               str(options.context), "--threads", str(options.threads), "--json"]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return done.returncode
    figures = json.loads(done.stdout)
    names = list(figures["perplexity"])
    exact = figures["perplexity"][names[0]]
    out.say(measure.table(["memories", "perplexity", "above float32, %"],
                          [[name, f"{value:.5f}", f"{100 * (value / exact - 1):.4f}"]
                           for name, value in figures["perplexity"].items()]))
    out.say(measure.table(["tokens", *(f"distance, {name}" for name in names[1:])],
                          [[f"{int(count):,}", *(f"{value:.2e}" for value in values)]
                           for count, values in figures["distance"].items()]))
    out.finish(dict(bench="states", **figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
