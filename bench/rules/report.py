"""The tables and the summary of the rules bench."""

import measure

BASES = ("lattice_dec", "deltanet", "ttt")
ASKED_RULES, ASKED_LOOP = 1.5, 20
PHASES = {"forward": "forward", "both": "forward+backward"}


def rate(row, phase):
    return row[phase]["mega_head_tokens_per_s"]


def plain(rows):
    """The token-by-token subject of every rule."""
    return {row["rule"]: row for row in rows if row["method"] == "exact"}


def costs(row, base):
    """Time per head-token relative to another row, {phase: factor}."""
    return {phase: rate(base, phase) / rate(row, phase) for phase in PHASES}


def summary(rows):
    exact = plain(rows)
    found = {}
    if "lattice_dec" not in exact:
        return found
    own = exact["lattice_dec"]
    found["lattice_dec_cost"] = {base: costs(own, exact[base]) for base in BASES[1:] if base in exact}
    others = {rule: costs(row, own)["both"] for rule, row in exact.items()
              if row["compared"]}
    if others:
        slowest = max(others, key=others.get)
        found["slowest_rule"] = dict(rule=slowest, cost=others[slowest], asked=ASKED_RULES)
    loops = [row for row in rows if row["method"] == "loop"]
    if loops and "deltanet" in exact:
        found["deltanet_over_loop"] = dict(costs(loops[0], exact["deltanet"]), asked=ASKED_LOOP)
    return found


def _pair(factors):
    return "/".join(f"{factors[phase]:.2f}" for phase in PHASES)


def rows_table(rows):
    exact = plain(rows)
    bases = [base for base in BASES if base in exact]
    header = ["million head-tokens/s, best of n", "T", "forward", "forward+backward", "state bytes",
              *(f"cost / {base}" for base in bases), "error"]
    cells = [[row["title"], row["T"], *(f"{rate(row, phase):.3f}" for phase in PHASES), f"{row['state_bytes']:,}",
              *(_pair(costs(row, exact[base])) for base in bases), f"{row['error']:.0e}"] for row in rows]
    return measure.table(header, cells)


def growth_table(rows):
    lengths = sorted({row["T"] for row in rows})
    header = ["T", *(f"{title}" for title in dict.fromkeys(row["title"] for row in rows)), "KV cache / Lattice state"]
    cells = []
    for T in lengths:
        here = [row for row in rows if row["T"] == T]
        sizes = {row["rule"]: row["state_bytes"] for row in here}
        ratio = sizes.get("softmax_attention", 0) / sizes["lattice_dec"] if "lattice_dec" in sizes else 0
        cells.append([T, *(f"{rate(row, 'forward'):.2f} / {rate(row, 'both'):.3f}" for row in here), f"{ratio:.0f}x"])
    return measure.table(header, cells)


def summary_lines(found):
    lines = []
    for base, factors in found.get("lattice_dec_cost", {}).items():
        lines.append(f"Lattice-Dec costs {factors['forward']:.2f}x {base} forward, {factors['both']:.2f}x "
                     "forward+backward")
    if "slowest_rule" in found:
        slowest = found["slowest_rule"]
        lines.append(f"slowest recurrent rule: {slowest['rule']}, {slowest['cost']:.2f}x the forward+backward of "
                     f"Lattice-Dec (asked at most {slowest['asked']}x)")
    if "deltanet_over_loop" in found:
        loop = found["deltanet_over_loop"]
        lines.append(f"deltanet vs a PyTorch loop: {loop['forward']:.1f}x forward, {loop['both']:.1f}x "
                     f"forward+backward (asked {loop['asked']}x)")
    return "\n".join(lines)


def text(figures):
    parts = ["", rows_table(figures["rows"]),
             "cost: time per head-token relative to that memory, forward/forward+backward; state: one head, float32",
             "", summary_lines(figures["summary"]), "", "forward / forward+backward as the sequence grows",
             growth_table(figures["growth"]), *(f"FAILED {failure}" for failure in figures["failures"])]
    return "\n".join(parts)
