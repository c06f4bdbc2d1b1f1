"""From timings to the bench's tables: speeds, cycles, fractions of what a core can do, ratios to the peers."""

import measure

# What the Dec kernel does per element of the state, in its passes (src/kernels/engine/update-inl.h). Forward: k@Phi and the
# dots read it once each; the update reads and writes it and makes the read-out and the norms. The backward replays
# that without the read-out, then pulls (reads the state and its gradient, writes that), sums twice over the state, and
# pushes (reads both, writes the gradient).
WORK = {
    "forward": dict(fma=6, loads=3, stores=1),
    "both": dict(fma=6 + 5 + 11, loads=3 + 3 + 6, stores=1 + 1 + 2),
}
PHASES = {"forward": "forward", "both": "forward+backward"}

# (phase, peer, asked): what the project asks of itself.
ASKED = (
    ("forward", "jax_exact", 20),
    ("both", "jax_exact", 100),
    ("both", "torch_loop", 50),
    ("both", "jax_chunk", 5),
    ("both", "torch_chunk", 5),
)
ASKED_SHAPES = 1.5


def head_tokens(shape):
    return shape["B"] * shape["T"] * shape["H"]


def bound_fractions(phase, shape, cycles, machine):
    """The cycles that multiply-adds alone, and L1 traffic alone, would take, as fractions of those it took."""
    elements, work = shape["M"] * shape["D"], WORK[phase]
    fma = elements * work["fma"] / machine["fma_per_cycle"]
    loads = 4 * elements * work["loads"] / machine["l1_load_bytes_per_cycle"]
    stores = 4 * elements * work["stores"] / machine["l1_store_bytes_per_cycle"]
    return dict(fma_bound=fma / cycles, l1_bound=max(loads, stores) / cycles)


def with_rates(row, machine, *, own):
    """The row with million head-tokens/s and cycles per head-token and core; for our own kernel the bounds too."""
    row = dict(row)
    for phase in PHASES:
        timing = dict(row[phase])
        timing["mega_head_tokens_per_s"] = head_tokens(row["shape"]) / timing["best"] / 1e6
        timing["median_mega_head_tokens_per_s"] = head_tokens(row["shape"]) / timing["median"] / 1e6
        timing["cycles"] = machine["clock_ghz"] * 1e3 * machine["threads"] / timing["mega_head_tokens_per_s"]
        if own:
            timing.update(bound_fractions(phase, row["shape"], timing["cycles"], machine))
        row[phase] = timing
    return row


def _speed(timing):
    rate, median = timing["mega_head_tokens_per_s"], timing["median_mega_head_tokens_per_s"]
    digits = 2 if rate >= 1 else 3 if rate >= 0.1 else 4
    return f"{rate:.{digits}f} ({median:.{digits}f})"


def _bounds(row):
    if "fma_bound" not in row["forward"]:
        return "", ""
    return tuple("/".join(f"{100 * row[phase][key]:.0f}%" for phase in PHASES) for key in ("fma_bound", "l1_bound"))


def rows_table(rows):
    header = ["million head-tokens/s: best (median)", "B", "T", "forward", "forward+backward", "cycles", "FMA bound",
              "L1 bound", "error"]
    cells = []
    for row in rows:
        shape = row["shape"]
        cycles = "/".join(f"{row[phase]['cycles']:,.0f}" for phase in PHASES)
        cells.append([row["title"], shape["B"], shape["T"], *(_speed(row[phase]) for phase in PHASES), cycles,
                      *_bounds(row), f"{row['error']:.0e}"])
    note = ("cycles: per head-token and core, forward/forward+backward; bounds: the share of them that multiply-adds "
            "alone, or L1 loads and stores alone, would take")
    return f"\n{measure.table(header, cells)}\n{note}"


def ratios(rows):
    """Our speed over a peer's, per head-token, for every batch both ran."""
    found = []
    own = {row["shape"]["B"]: row for row in rows if "peer" not in row}
    for phase, peer, asked in ASKED:
        for row in rows:
            B = row["shape"]["B"]
            if row.get("peer") != peer or B not in own:
                continue
            ratio = own[B][phase]["mega_head_tokens_per_s"] / row[phase]["mega_head_tokens_per_s"]
            found.append(dict(phase=phase, peer=peer, title=row["title"], B=B, ratio=ratio, asked=asked))
    return found


def ratio_lines(found):
    return "".join(f"\n{PHASES[x['phase']]} vs {x['title']}, B={x['B']}: {x['ratio']:.1f}x (asked {x['asked']}x)"
                   for x in found)


def shapes(rows, others, machine):
    """Cost per state element of other shapes, relative to 64 x 64 with B=1."""
    base = next((row for row in rows if "peer" not in row and row["shape"]["B"] == 1), None)
    if base is None:
        return []

    def cost(row, phase):
        return row[phase]["cycles"] / row["shape"]["M"] / row["shape"]["D"]

    rated = [with_rates(row, machine, own=True) for row in others]
    return [dict(row, relative_cost={phase: cost(row, phase) / cost(base, phase) for phase in PHASES})
            for row in rated]


def shape_lines(found):
    lines = []
    for row in found:
        costs = ", ".join(f"{PHASES[phase]} {_speed(row[phase])} M/s, {row['relative_cost'][phase]:.2f}x the cost per "
                          f"element of 64x64" for phase in PHASES)
        lines.append(f"\nM={row['shape']['M']} D={row['shape']['D']}: {costs} (asked at most {ASKED_SHAPES}x)")
    return "".join(lines)


def long_line(result):
    if result is None:
        return ""
    shape = result["shape"]
    rate = head_tokens(shape) / result["both"]["best"] / 1e6
    return (f"\nT={shape['T']:,} H={shape['H']}: forward+backward {rate:.2f} M/s with "
            f"{result['extra_states_per_head']:,.0f} states of extra memory per head (asked at most T/32 + 64 = {result['allowed_states_per_head']:,.0f}); "
            f"slot norms moved by {result['norm_drift']:.0e}")
