"""The speeds as one SVG: bars for every memory, lines for what happens as the sequence grows."""

import math

from drawing import MEMORY, MUTED, curve, document, line, text
from report import rate

WIDTH, LEFT, RIGHT = 860, 210, 40
FORWARD, BOTH = "#2b6cb0", "#dd6b20"


def box(x, y, width, height, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{color}"/>'


def short(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def nice_step(largest):
    """A round distance that puts three to seven grid lines below the largest value."""
    power = 10 ** math.floor(math.log10(largest))
    return next(power * step for step in (0.2, 0.5, 1, 2) if largest / (power * step) <= 7)


def bars(rows, top):
    """The bars from y = top on, and where they end."""
    largest = max(rate(row, "forward") for row in rows)
    scale = (WIDTH - LEFT - RIGHT - 30) / largest
    pitch, thick = 36, 13
    bottom = top + pitch * len(rows)
    parts, step = [], nice_step(largest)
    for i in range(int(largest / step) + 1):
        x = LEFT + i * step * scale
        parts += [line(x, top - 6, x, bottom), text(x, bottom + 14, f"{i * step:g}", anchor="middle", color=MUTED)]
    for i, row in enumerate(rows):
        y = top + i * pitch
        parts.append(text(LEFT - 10, y + 18, row["title"], anchor="end",
                          weight="bold" if row["rule"].startswith("lattice_") else "normal"))
        for offset, phase, color in ((0, "forward", FORWARD), (thick + 1, "both", BOTH)):
            value = rate(row, phase)
            parts.append(box(LEFT, y + offset, max(value * scale, 1), thick, color))
            parts.append(text(LEFT + value * scale + 5, y + offset + 11, short(value), size=11, color=MUTED))
    return parts, bottom + 20


def legend(y):
    parts = []
    for x, color, words in ((LEFT, FORWARD, "forward"), (LEFT + 90, BOTH, "forward + backward")):
        parts += [box(x, y - 10, 12, 12, color), text(x + 17, y, words)]
    return parts


def curves(rows, top, height=230):
    """Forward+backward speed against the length, both axes logarithmic."""
    lengths = sorted({row["T"] for row in rows})
    values = [rate(row, "both") for row in rows]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    right = WIDTH - RIGHT - 140

    def at(T, value):
        across = lengths.index(T) / max(1, len(lengths) - 1)
        up = (math.log10(value) - low) / max(1, high - low)
        return LEFT + across * (right - LEFT), top + height - up * height

    parts = []
    for power in range(low, high + 1):
        y = at(lengths[0], 10.0**power)[1]
        parts += [line(LEFT, y, right, y), text(LEFT - 10, y + 4, f"{10.0**power:g}", anchor="end", color=MUTED)]
    for T in lengths:
        x = at(T, 10.0**low)[0]
        parts.append(text(x, top + height + 18, f"T = {T:,}" if T == lengths[0] else f"{T:,}", anchor="middle",
                          color=MUTED))
    labels = []
    for rule, color in MEMORY.items():
        points = [at(row["T"], rate(row, "both")) for row in sorted(rows, key=lambda row: row["T"])
                  if row["rule"] == rule]
        if not points:
            continue
        parts += curve(points, color)
        labels.append((points[-1][1], rule, color))
    return parts + end_labels(labels, right + 10), top + height + 30


def end_labels(labels, x):
    """The names at the ends of the curves, moved apart where two ends are close."""
    parts, lowest = [], -math.inf
    for y, rule, color in sorted(labels):
        lowest = max(y + 4, lowest + 15)
        parts.append(text(x, lowest, rule, color=color, weight="bold"))
    return parts


def svg(figures):
    shown = [row for row in figures["rows"] if row["method"] != "loop"]
    T = shown[0]["T"] if shown else 0
    size = f"H = {figures['heads']}, M = {figures['slots']}, D = {figures['width']}, float32"
    machine = figures["machine"]
    parts = [text(24, 34, "Recurrent memories: million head-tokens per second", size=18, weight="bold"),
             text(24, 55, f"{size}, T = {T:,}, {machine['threads']} threads, {machine['cpu']}, {machine['isa']}",
                  color=MUTED)]
    bottom = 70
    if shown:
        parts += legend(80)
        more, bottom = bars(shown, 100)
        parts += more
    if figures["growth"]:
        parts.append(text(24, bottom + 40, "Forward + backward as the sequence grows", size=15, weight="bold"))
        more, bottom = curves(figures["growth"], bottom + 62)
        parts += more
    return document(WIDTH, bottom + 20, parts)
