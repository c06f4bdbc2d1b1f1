"""./lattice plan: what a training would take on machines that you do not have.

Prints time of a step, tokens a second, days to a number of tokens, memory of a rank, load of the network and what bounds
it, from the rate of one rank: given, or measured here. --check compares the model of cost with trainings on 1, 2 and 4
ranks of this host. docs/scaling.md explains the model.
"""

import argparse
import json
import random
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from plan import check, cost, figure, simulate  # noqa: E402  (needs the path)

PROGRAM = ROOT / "build" / "release" / "bin" / "lattice"
RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"
DAY = 86400.0


def read_work(config):
    path = Path(config) if Path(config).is_file() else ROOT / "configs" / f"{config}.toml"
    if not path.is_file():
        sys.exit(f"lattice plan: there is no configuration {config}")
    inspected = subprocess.run([PROGRAM, "inspect", "--config", path, "--json"], capture_output=True, text=True)
    if inspected.returncode != 0:
        sys.exit(inspected.stderr.strip())
    facts, train = json.loads(inspected.stdout), tomllib.loads(path.read_text()).get("train", {})
    model = facts["model"]
    hidden = model["hidden"] or (8 * model["width"] + 47) // 48 * 16
    slots = model["slots"] or model["width"] // model["heads"]
    # As src/train/micro_batch.cc estimates it.
    activations = model["layers"] * (18 * model["width"] + 3 * hidden + model["width"] * slots // 32) * 4
    return cost.Work(path.stem, facts["parameters"]["total"], facts["training_flops_per_token"],
                     train.get("batch_tokens", 4096), train.get("seq_len", 512), activations)


def arguments():
    parser = argparse.ArgumentParser(prog="./lattice plan", description=__doc__.partition("\n\n")[2],
                                     epilog="Example: ./lattice plan --config 760m --nodes 64 --ranks-per-node 8 --link-gbps 100")
    add = parser.add_argument
    add("--config", default="110m", help="a file, or the name of one of configs/ (default 110m)")
    add("--nodes", type=int, default=1, help="hosts (default 1)")
    add("--ranks-per-node", type=int, default=1, help="processes on each (default 1)")
    add("--link-gbps", type=float, default=100.0, help="of a host's network, in Gbit/s each way (default 100)")
    add("--rank-gflops", type=float, help="what training sustains on one rank; default: measured here, on one thread")
    add("--local-gbps", type=float, default=16.0, help="between ranks of one host, in Gbit/s (default 16)")
    add("--latency-us", type=float, default=30.0, help="of a message (default 30)")
    add("--spread", type=float, default=0.03, help="of the ranks' speeds: deviation of the logarithm (default 0.03)")
    add("--node-mtbf-days", type=float, default=365.0, help="days between two failures of one host (default 365)")
    add("--restart-s", type=float, default=60.0, help="seconds from a failure to the next step (default 60)")
    add("--save-delay-s", type=float, default=1.0, help="seconds by which a checkpoint delays training (default 1)")
    add("--tokens", type=float, nargs="*", default=[15e9, 30e9], help="totals to reach (default 15e9 30e9)")
    add("--seed", type=int, default=1, help="of the simulation (default 1)")
    add("--check", action="store_true", help="compare the model with trainings on 1, 2 and 4 ranks of this host")
    add("--figure", type=Path, help="an SVG of strong and weak scaling, and of goodput under failures")
    add("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    for name in ("nodes", "ranks_per_node", "link_gbps", "local_gbps", "latency_us", "node_mtbf_days", "save_delay_s"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0")
    if options.spread < 0 or options.restart_s < 0 or (options.rank_gflops is not None and options.rank_gflops <= 0):
        parser.error("--spread and --restart-s must not be negative, --rank-gflops must be above 0")
    return options


def machine_of(options, rank_flops):
    return cost.Machine(options.nodes, options.ranks_per_node, rank_flops, options.link_gbps / 8 * 1e9,
                        options.local_gbps / 8 * 1e9, options.latency_us * 1e-6, node_mtbf=options.node_mtbf_days * DAY,
                        spread=options.spread, restart=options.restart_s, save_delay=options.save_delay_s)


def shared_evenly(work, ranks):
    """The work with as many sequences a step as the ranks can share, and a note when that changes it."""
    rows = work.batch_tokens // work.seq_len
    fitting = -(-rows // ranks) * ranks
    if fitting == rows:
        return work, ""
    return replace(work, batch_tokens=fitting * work.seq_len), (
        f"{rows} sequences a step cannot be shared by {ranks} ranks; planned with {fitting} ({fitting * work.seq_len:,} tokens)")


def plan(work, machine, options):
    work, note = shared_evenly(work, machine.ranks)
    one, chance = cost.step(work, machine), random.Random(options.seed)
    simulated = sum(simulate.step_seconds(work, machine, chance) for _ in range(20)) / 20
    rate = work.batch_tokens / simulated
    most = max(options.tokens, default=1e9) / rate
    interval, goodput = simulate.best_interval(machine, most, options.seed)
    alone = cost.step(work, replace(machine, nodes=1, ranks_per_node=1)).seconds
    return {"config": work.name, "note": note, "ranks": machine.ranks, "rank_gflops": machine.rank_flops / 1e9,
            "step_s": simulated, "step_without_stragglers_s": one.seconds, "compute_s": one.compute,
            "sums_s": one.sums, "sums_hidden": 1 - one.exposed / one.sums if one.sums else 1.0,
            "gather_s": one.gather, "update_s": one.update, "tokens_per_s": rate, "efficiency": alone / machine.ranks / simulated,
            "memory_per_rank": cost.memory_per_rank(work, machine), "link_busy": cost.network_share(work, machine, one),
            "bound_by": cost.bound(one), "days": {f"{t:.3g}": t / rate / DAY / goodput for t in options.tokens},
            "goodput": goodput, "save_every_s": interval, "save_every_steps": max(1, round(interval / simulated)),
            "young_daly_s": simulate.young_daly(machine)}


def text(facts):
    days = ", ".join(f"{days:,.1f} days to {float(tokens):.3g}" for tokens, days in facts["days"].items())
    note = [f"note           {facts['note']}"] if facts["note"] else []
    return "\n".join([
        f"{facts['config']} on {facts['ranks']} ranks of {facts['rank_gflops']:,.0f} GFLOP/s", *note,
        f"step           {facts['step_s']:.3f} s with stragglers, {facts['step_without_stragglers_s']:.3f} s without; bound by {facts['bound_by']}",
        f"  computing    {facts['compute_s']:.3f} s",
        f"  sums         {facts['sums_s']:.3f} s of gradients, {100 * facts['sums_hidden']:.0f} % hidden behind the backward pass",
        f"  the rest     {facts['gather_s']:.3f} s gathering weights, {facts['update_s']:.3f} s update",
        f"tokens/s       {facts['tokens_per_s']:,.0f}, {100 * facts['efficiency']:.0f} % of {facts['ranks']} ranks alone",
        f"time           {days} (failures included)",
        f"memory         {facts['memory_per_rank'] / 2**30:.1f} GiB a rank",
        f"network        a host's link is busy {100 * facts['link_busy']:.0f} % of the time",
        f"checkpoints    every {facts['save_every_s']:,.0f} s, train.save_every={facts['save_every_steps']} "
        f"(Young and Daly: {facts['young_daly_s']:,.0f} s); goodput {100 * facts['goodput']:.1f} %"])


def main():
    options = arguments()
    work = read_work(options.config)
    rank_flops = options.rank_gflops * 1e9 if options.rank_gflops else check.measured_rate(PROGRAM)
    facts = plan(work, machine_of(options, rank_flops), options)
    if options.check:
        facts["check"] = check.compare(PROGRAM)
    if options.figure:
        description = figure.describe(work, machine_of(options, rank_flops), options.seed)
        subprocess.run([RUNNER, "plot", "-", "--out", options.figure], input=json.dumps(description), text=True, check=True)
    if options.json:
        print(json.dumps(facts, indent=1))
        return 0
    print(text(facts))
    for row in facts.get("check", []):
        print(f"check          {row['ranks']} ranks here: {row['measured_s']:.3f} s measured, {row['predicted_s']:.3f} s by the "
              f"model, {100 * (row['predicted_s'] / row['measured_s'] - 1):+.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
