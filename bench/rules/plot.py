"""The speeds as a figure for `lattice plot` (src/plot/figure_json.h): a row a memory, and what growth costs."""

from report import rate


def speeds(figures):
    """A row a memory: million head-tokens a second, forward and with the gradient."""
    shown = [row for row in figures["rows"] if row["method"] != "loop"]
    size = f"H = {figures['heads']}, M = {figures['slots']}, D = {figures['width']}, float32"
    machine = figures["machine"]
    panels = [dict(title=title, x_label="million head-tokens/s",
                   rows=[dict(values=[rate(row, phase)], note=f"{rate(row, phase):.3g}") for row in shown])
              for phase, title in (("forward", "forward"), ("both", "forward + backward"))]
    T = f", T = {shown[0]['T']:,}" if shown else ""
    return dict(kind="rows", title="Recurrent memories: speed of the operators",
                key=f"{size}{T}, {machine['threads']} threads, {machine['cpu']}, {machine['isa']}",
                names=[dict(text=row["title"], memory=row["memory"]) for row in shown], panels=panels)


def growth(figures):
    """Speed against the length of the sequence."""
    rows = figures["growth"]
    lines = [dict(name=rule, memory=memory, points=[[row["T"], rate(row, "both")] for row in rows if row["rule"] == rule])
             for rule, memory in {row["rule"]: row["memory"] for row in rows}.items()]
    return dict(kind="lines", title="Speed as the sequence grows", panels=[
        dict(title="forward + backward", x_label="tokens", y_label="million head-tokens/s", log_x=True, log_y=True,
             lines=lines)])
