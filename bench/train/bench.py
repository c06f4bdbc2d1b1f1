"""Training speed of the language models beside this machine's matrix products and a LLaMA in PyTorch.

    ./lattice bench train                      110m, T=512, float32 and (where the CPU has it) bf16
    ./lattice bench train --seq-len 4096 --peers compiled
    ./lattice bench train --peers none --mixers lattice_dec,deltanet --json out.json
    ./lattice bench train --peers none --python        a step of lattice.nn beside the C++ model's

The fraction is tokens/s over what the measured GEMM rate allows at 6 operations a parameter and token.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import ROOT, run_child  # noqa: E402

STEP = ROOT / "build" / "release" / "bin" / "lattice_bench_train"


def ours(args, mixer, precision):
    command = [str(STEP), str(args.config), str(args.tokens), str(args.seq_len), str(args.steps), precision, mixer,
               "recompute" if args.recompute else "keep"]
    return figures_of(command)


def figures_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"[bench train] {' '.join(command)} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def peer(args, shape, precision, compiled, reference):
    job = dict(shape, compile=compiled, precision=precision, tokens=args.tokens, length=args.seq_len, steps=args.steps)
    row = run_child(Path(__file__).with_name("llama.py"), job, threads=args.threads, timeout=1500)
    name = "LLaMA, PyTorch " + ("compiled" if compiled else "eager")
    if "error" in row:
        return dict(mixer=name, precision=precision, error=row["error"])
    bound = reference["gemm_gflops"] * 1e9 / (6 * row["parameters"])
    return dict(mixer=name, precision=precision, tokens_per_s=row["tokens_per_s"], fraction=row["tokens_per_s"] / bound,
                gemm_gflops=reference["gemm_gflops"], peak_gib=row["peak_gib"])


def both_ways(args, mixer, precision):
    """The C++ model's row and that of lattice.nn, the best of --rounds in turn: a machine's speed changes with time."""
    rounds = []
    for _ in range(args.rounds):
        row = ours(args, mixer, precision)
        rounds.append((row, in_python(args, mixer, precision, row)))
    best = max((row for row, _ in rounds), key=lambda row: row["tokens_per_s"])
    python = max((row for _, row in rounds), key=lambda row: row.get("tokens_per_s", 0))
    if "error" not in python:
        python["times_cpp"] = best["tokens_per_s"] / python["tokens_per_s"]
    return [best, python]


def in_python(args, mixer, precision, reference):
    """The same model and step from Python, with its time as a multiple of the C++ model's."""
    job = dict(config=str(args.config), mixer=mixer, precision=precision, tokens=args.tokens, length=args.seq_len,
               steps=args.steps, recompute=args.recompute)
    row = run_child(Path(__file__).with_name("python_step.py"), job, threads=args.threads, timeout=1500)
    name = f"{mixer}, lattice.nn"
    if "error" in row:
        return dict(mixer=name, precision=precision, error=row["error"])
    rate = row["tokens_per_s"]
    return dict(mixer=name, precision=precision, tokens_per_s=rate, fraction=rate / reference["bound_tokens_per_s"],
                gemm_gflops=reference["gemm_gflops"], peak_gib=row["peak_gib"], times_cpp=reference["tokens_per_s"] / rate)


def shape_of(config):
    model = figures_of([str(STEP.with_name("lattice-run")), "inspect", "--config", str(config), "--json"])["model"]
    hidden = model["hidden"] or -(-8 * model["width"] // 48) * 16
    return dict(vocabulary=model["vocab_size"], layers=model["layers"], width=model["width"], heads=model["heads"],
                hidden=hidden)


def has_bf16():
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return "avx512_bf16" in flags or "amx_bf16" in flags


def main():
    parser = argparse.ArgumentParser(prog="./lattice bench train", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=str(ROOT / "configs" / "110m.toml"))
    parser.add_argument("--mixers", default="lattice_dec", help="comma-separated")
    parser.add_argument("--precisions", default="fp32,bf16" if has_bf16() else "fp32")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens per micro-batch")
    parser.add_argument("--seq-len", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--recompute", action="store_true", help="compute activations twice instead of keeping them")
    parser.add_argument("--peers", default="eager,compiled", help="eager, compiled, none")
    parser.add_argument("--python", action="store_true", help="also a step of lattice.nn, beside the C++ model's")
    parser.add_argument("--rounds", type=int, default=1, help="with --python: measure both so often in turn, and take the best of each")
    parser.add_argument("--json", help="write the rows to this file, - for standard output")
    args = parser.parse_args()

    rows = []
    for precision in args.precisions.split(","):
        mixers = args.mixers.split(",")
        subjects = [row for mixer in mixers for row in (both_ways(args, mixer, precision) if args.python else [ours(args, mixer, precision)])]
        rows += subjects
        for name in [p for p in args.peers.split(",") if p != "none"]:
            rows.append(peer(args, shape_of(args.config), precision, name == "compiled", subjects[0]))
    if args.json == "-":
        print(json.dumps(rows, indent=1))
        return
    print(f"{'model':28} {'precision':9} {'tokens/s':>9} {'GF/s':>7} {'of GEMM bound':>13} {'peak GiB':>8}")
    for row in rows:
        if "error" in row:
            print(f"{row['mixer']:28} {row['precision']:9} failed: {row['error']}")
            continue
        print(f"{row['mixer']:28} {row['precision']:9} {row['tokens_per_s']:9.1f} {row['gemm_gflops']:7.0f} "
              f"{row['fraction']:13.3f} {row['peak_gib']:8.2f}"
              + (f"   {row['times_cpp']:.3f} x the time of C++" if "times_cpp" in row else ""))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
