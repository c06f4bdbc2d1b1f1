"""Speed and error over the length of a chunk, as a figure for `lattice plot` (src/plot/figure_json.h)."""

from report import rate


def figure(figures):
    exact, others = figures["rows"][0], [row for row in figures["rows"][1:] if row["chunk"] > 1]
    chunks = sorted({row["chunk"] for row in others})
    titles = list(dict.fromkeys(row["title"] for row in others))

    def lines(value):
        return [dict(name=title, points=[[row["chunk"], value(row)] for row in others if row["title"] == title])
                for title in titles]

    level = dict(name="exact", points=[[chunk, rate(exact, "both")] for chunk in (chunks[0], chunks[-1])])
    panel = dict(x_label="tokens per chunk", log_x=True, log_y=True)
    return dict(kind="lines", title="Chunked forms against the exact recurrence", panels=[
        dict(panel, title="forward + backward", y_label="million head-tokens/s",
             lines=[level, *lines(lambda row: rate(row, "both"))]),
        dict(panel, title="relative error of y against exact", y_label="error", lines=lines(lambda row: row["error"]))])
