"""Speed and error over the length of a chunk, as one SVG."""

import math

from drawing import INK, MUTED, curve, document, line, text
from report import rate

WIDTH, HEIGHT, LEFT, TOP, PANEL = 900, 400, 70, 60, 340
COLORS = {"exact": INK, "linear1": "#2f855a", "linear2": "#2b6cb0", "refined, 2 sweeps": "#dd6b20",
          "refined, 4 sweeps": "#c53030"}


class Panel:
    """One diagram with logarithmic axes."""

    def __init__(self, left, chunks, lowest, highest, title):
        self.left, self.bottom, self.top = left, HEIGHT - 60, TOP + 20
        self.low, self.high = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
        self.chunks, self.parts = chunks, [text(left, TOP, title, weight="bold")]
        for power in range(self.low, self.high + 1):
            y = self.y(10.0**power)
            self.parts.append(line(left, y, left + PANEL, y))
            self.parts.append(text(left - 8, y + 4, f"{10.0**power:g}", anchor="end", color=MUTED))
        for chunk in chunks:
            self.parts.append(text(self.x(chunk), self.bottom + 18, chunk, anchor="middle", color=MUTED))
        self.parts.append(text(left + PANEL / 2, self.bottom + 38, "tokens per chunk", anchor="middle", color=MUTED))

    def x(self, chunk):
        span = math.log2(self.chunks[-1] / self.chunks[0]) or 1
        return self.left + PANEL * math.log2(chunk / self.chunks[0]) / span

    def y(self, value):
        share = (math.log10(value) - self.low) / max(self.high - self.low, 1)
        return self.bottom - (self.bottom - self.top) * share

    def curve(self, points, color, dashed=False):
        self.parts += curve([(self.x(c), self.y(v)) for c, v in points], color, dashed=dashed)


def svg(figures):
    rows = figures["rows"]
    exact, others = rows[0], [row for row in rows[1:] if row["chunk"] > 1]
    chunks = sorted({row["chunk"] for row in others})
    speeds = [rate(row, "both") for row in rows]
    left = Panel(LEFT, chunks, min(speeds), max(speeds), "forward + backward, million head-tokens/s")
    right = Panel(LEFT + PANEL + 100, chunks, min(row["error"] for row in others), max(row["error"] for row in others),
                  "relative error of y against exact")
    left.curve([(chunks[0], rate(exact, "both")), (chunks[-1], rate(exact, "both"))], COLORS["exact"], dashed=True)
    for title in dict.fromkeys(row["title"] for row in others):
        mine = [row for row in others if row["title"] == title]
        left.curve([(row["chunk"], rate(row, "both")) for row in mine], COLORS[title])
        right.curve([(row["chunk"], row["error"]) for row in mine], COLORS[title])
    parts, x = [], LEFT
    for title, color in COLORS.items():
        parts += [f'<rect x="{x}" y="18" width="14" height="4" fill="{color}"/>', text(x + 20, 25, title)]
        x += 40 + 8 * len(title)
    return document(WIDTH, HEIGHT, parts + left.parts + right.parts)
