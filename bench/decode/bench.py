"""Decoding, batches and prompts of the runtime: ./lattice bench decode.

Runs build/release/bin/lattice_bench_decode: tokens/s behind contexts of several lengths, with several sessions at once
and of a prompt, beside this machine's read bandwidth and the rate of its matrix products. Without --model the weights
are untrained: they take the same time. A long context is read first, at the speed of a prompt.

llama.cpp in the same run: --llama-bench PATH --gguf a.gguf b.gguf (build it from its sources; nothing is fetched).
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure  # noqa: E402  (needs the path)

RUNNER = measure.Runner("lattice_bench_decode", "110m.toml", {
    "format": "comma-separated: float32,bf16,int8,int4",
    "contexts": "tokens read before decoding, ascending (default 0,1024,32768)",
    "batch": "sessions decoded together (default 1,2,4,8,16,32,64)",
    "seconds": "time per figure (default 1)",
}, quick=dict(contexts="0,1024", batch="1,16", seconds="0.3"))


def options_of():
    parser = measure.arguments(__doc__, "./lattice bench decode --format int8 --contexts 0,1024 --json")
    RUNNER.add_options(parser)
    parser.add_argument("--set", action="append", default=[], help="section.key=value, overrides the configuration")
    parser.add_argument("--llama-bench", metavar="PATH", help="the program of llama.cpp, to measure --gguf with")
    parser.add_argument("--gguf", nargs="+", default=[], metavar="FILE", help="models for --llama-bench")
    options = measure.parse(parser)
    if bool(options.llama_bench) != bool(options.gguf):
        parser.error("--llama-bench and --gguf belong together: the program, and the models to run with it")
    return options


def peer(options, file):
    """Tokens/s of llama.cpp with one model: decode, and a prompt of 512."""
    command = [options.llama_bench, "-m", file, "-t", str(options.threads), "-p", "512", "-n", "64", "-o", "json"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        rows = json.loads(done.stdout)
        return dict(file=file, prefill=next(row["avg_ts"] for row in rows if row["n_prompt"]),
                    decode=next(row["avg_ts"] for row in rows if row["n_gen"]))
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, StopIteration) as error:
        return dict(file=file, error=f"{type(error).__name__}: {error}")


def rows_of(figures):
    """One row per figure, one column per format."""
    formats = figures["formats"]

    def row(title, digits, value):
        return [title, *(f"{value(each):,.{digits}f}" for each in formats)]

    rows = [row("weights a token reads, MB", 0, lambda f: f["weight_bytes_per_token"] / 1e6),
            row("memory reads, GB/s", 1, lambda f: f["read_bandwidth"] / 1e9),
            row("a session, KiB", 0, lambda f: f["session_bytes"] / 1024)]
    for context in formats[0]["decode_tokens_per_second_by_context"]:
        rows.append(row(f"decode behind {int(context):,} tokens, tokens/s", 1,
                        lambda f: f["decode_tokens_per_second_by_context"][context]))
    rows.append(row("time there against an empty session", 3, lambda f: f["last_context_time_against_empty"]))
    rows.append(row("a session there, KiB", 0, lambda f: f["last_session_bytes"] / 1024))
    rows.append(row("of what the bandwidth allows, %", 0, lambda f: 100 * f["bandwidth_share"]))
    for count in formats[0]["decode_tokens_per_second_by_sessions"]:
        rows.append(row(f"{count} session{'s' if count != '1' else ''}, tokens/s", 1,
                        lambda f: f["decode_tokens_per_second_by_sessions"][count]))
    rows += [row("the products alone allow, tokens/s", 1, lambda f: f["product_tokens_per_second"]),
             row("prompt of 512, tokens/s", 0, lambda f: f["prefill_512_tokens_per_second"]),
             row("its products against the product alone", 2, lambda f: f["prefill_flops"] / f["matmul_flops"]),
             row("first token of that prompt, ms", 0, lambda f: 1e3 * f["first_token_seconds"]),
             row("the same from the prefix cache, ms", 1, lambda f: 1e3 * f["first_token_seconds_cached"])]
    return rows


def main():
    options = options_of()
    out = measure.Output(options.json)
    changes = [word for value in options.set for word in ("--set", value)]
    figures = dict(bench="decode", threads=options.threads, **RUNNER.figures(options, changes))
    out.say(measure.table([figures["isa"], *(each["format"] for each in figures["formats"])], rows_of(figures)))
    figures["llama_cpp"] = [peer(options, file) for file in options.gguf]
    for row in figures["llama_cpp"]:
        out.say(f"llama.cpp, {row['file']}: " + (row.get("error") or
                f"decode {row['decode']:.1f}, prompt of 512 {row['prefill']:.0f} tokens/s"))
    out.finish(figures)
    return 1 if any("error" in row for row in figures["llama_cpp"]) else 0


if __name__ == "__main__":
    sys.exit(main())
