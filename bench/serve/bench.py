"""The server under load: ./lattice bench serve.

Runs build/release/bin/lattice_bench_serve, a server and its clients in one process on loopback: many streams at
once, four times as many clients as places, idle sessions, and with --soak the memory in the course of time. Without
--model the weights are untrained: they take the same time.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure  # noqa: E402  (needs the path)

RUNNER = measure.Runner("lattice_bench_serve", "tiny.toml", {
    "streams": "streams at the same time (default 200)",
    "tokens": "tokens of an answer (default 32)",
    "prompt": "tokens of a prompt (default 64)",
    "sessions": "idle sessions (default 1000)",
    "places": "places of the server that is overloaded (default 32)",
    "seconds": "of each measurement under load (default 5)",
    "soak": "seconds of load with a look at the memory (default 0)",
}, quick=dict(streams="20", tokens="8", sessions="50", places="8", seconds="1"))


def rows_of(figures):
    loads = [figures[name] for name in ("streams", "full", "overloaded")]

    def row(title, name, factor=1, digits=0):
        return [title, *(f"{factor * load[name]:,.{digits}f}" for load in loads)]

    return [row("completed", "completed"), row("failed", "failed"), row("tokens/s", "tokens_per_second"),
            row("first token p50, ms", "first_token_p50", 1e3, 1), row("first token p99, ms", "first_token_p99", 1e3, 1),
            row("between tokens p99, ms", "between_tokens_p99", 1e3, 1), row("rejected", "rejected"),
            row("rejection p50, ms", "rejection_p50", 1e3, 2), row("rejection p99, ms", "rejection_p99", 1e3, 2),
            row("slowest rejection, ms", "rejection_max", 1e3, 2)]


def bench_stores(options, out):
    import deployment  # needs what torture needs

    seconds, tokens = options.seconds or ("1" if options.quick else "5"), options.tokens or "32"
    config = options.config or "configs/tiny.toml"
    figures = dict(bench="serve", config=config, stores=deployment.stores(config, seconds, tokens, options.busy),
                   replicas=deployment.replicas(seconds, tokens) if options.busy else {})
    memory = figures["stores"][0]

    def rate(store):
        return statistics.median(store["tokens_per_second"]) if store["tokens_per_second"] else float("nan")

    out.say(measure.table(["store", "idle session: first token, ms", "beyond memory", "p99, ms", "stored, ms", "tokens/s", "of memory's", "KB stored"], [
        [one["store"], f"{1e3 * one['resume_p50']:.1f}", f"{1e3 * (one['resume_p50'] - memory['resume_p50']):.1f}",
         f"{1e3 * one['resume_p99']:.1f}", f"{1e3 * one['stored_p50']:.1f}", f"{rate(one):,.0f}", f"{100 * rate(one) / rate(memory):.1f} %",
         f"{one['written_bytes'] / 1e3:,.0f}"] for one in figures["stores"]]))
    for name, rates in figures["replicas"].items():
        out.say(f"{name}: {', '.join(f'{one:,.0f}' for one in rates)} tokens/s")
    out.finish(figures)
    return 0


def bench_many(options, out):
    import deployment

    figures = dict(bench="serve", many=deployment.many(options.config or "configs/tiny.toml", options.many))
    found = figures["many"]
    out.say(f"{found['sessions']:,} sessions of {found['stored_bytes'] / 1e3:,.0f} KB stored in {found['seconds']:,.0f} s; "
            f"resident after each tenth, MB: {' '.join(f'{one / 1e6:,.1f}' for one in found['resident_bytes'])}")
    out.say(f"{found['resumed']} of them resumed, {found['wrong']} with another text than their prompt's")
    out.finish(figures)
    return 0 if found["wrong"] == found["failed"] == 0 else 1


def bench_states(options, out):
    import states

    text = Path(options.text).read_text(encoding="utf-8", errors="replace")[-400_000:]
    found = states.measure_states(options.model, text, *((4, 128, 64) if options.quick else (48, 512, 128)))
    out.say(measure.table(["state", "perplexity", "mean log-probability lost", "largest change", "KB", "zstd, KB"], [
        [name, f"{one['perplexity']:.4f}", f"{one['mean_difference']:.2e}", f"{one['largest_difference']:.2e}",
         f"{one['bytes'] / 1e3:,.1f}", f"{one['zstd_bytes'] / 1e3:,.1f}"] for name, one in found.items()]))
    out.finish(dict(bench="serve", states=found))
    return 0


def main():
    parser = measure.arguments(__doc__, "./lattice bench serve --streams 200 --soak 600")
    RUNNER.add_options(parser)
    parser.add_argument("--stores", action="store_true", help="measure stores of sessions and replicas instead")
    parser.add_argument("--busy", type=int, default=64, metavar="N",
                        help="with --stores: sessions that are never idle (default 64); 0: only resume idle ones")
    parser.add_argument("--many", type=int, default=0, metavar="N",
                        help="make N sessions in a directory instead, of which 64 fit into memory")
    parser.add_argument("--states", action="store_true",
                        help="measure what states of bf16 or 8 bits would cost instead, with --model and --text")
    parser.add_argument("--text", metavar="FILE", help="with --states: text that the model was not trained on")
    options = measure.parse(parser)
    if options.states and not (options.model and options.text):
        parser.error("--states needs --model, a trained one, and --text")
    out = measure.Output(options.json)
    if options.states:
        return bench_states(options, out)
    if options.many:
        return bench_many(options, out)
    if options.stores:
        return bench_stores(options, out)
    figures = dict(bench="serve", threads=options.threads, **RUNNER.figures(options))
    out.say(measure.table(["", "all at once", "full", "4 x"], rows_of(figures)))
    if figures["full"]["tokens_per_second"]:
        share = figures["overloaded"]["tokens_per_second"] / figures["full"]["tokens_per_second"]
        out.say(f"throughput at four times the load: {100 * share:.1f} %")
    if figures["sessions"]:
        states = figures["sessions"] * figures["session_bytes"]
        out.say(f"{figures['sessions']:,} idle sessions: {figures['sessions_grown'] / 1e6:,.1f} MB, "
                f"their states {states / 1e6:,.1f} MB")
    if figures["soak_resident_bytes"]:
        out.say("resident in the course of the soak, MB: " +
                " ".join(f"{value / 1e6:,.1f}" for value in figures["soak_resident_bytes"]))
    out.finish(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
