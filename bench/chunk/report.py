"""The figures of the chunk bench as tables."""

import measure


def rate(row, phase):
    return row[phase]["mega_head_tokens_per_s"]


def _speed(row, phase):
    value = rate(row, phase)
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def forms_table(rows):
    cells = [[row["title"], row["chunk"], _speed(row, "forward"), _speed(row, "both"), f"{row['error']:.1e}"]
             for row in rows]
    title = f"million head-tokens/s at T={rows[0]['T']}"
    return measure.table([title, "C", "forward", "forward+backward", "error of y"], cells)


def lengths_table(rows):
    lengths = sorted({row["T"] for row in rows})
    titles = list(dict.fromkeys(row["title"] for row in rows))
    at = {(row["title"], row["T"]): row for row in rows}
    cells = [[title, *(f"{_speed(at[title, T], 'forward')} / {_speed(at[title, T], 'both')}" for T in lengths)]
             for title in titles]
    return measure.table(["forward / forward+backward", *(f"T={T}" for T in lengths)], cells)


def ratios(peers, asked):
    own = next((row for row in peers if row["name"] == "lattice"), None)
    if own is None:
        return ""
    lines = [f"linear2, C=64, forward+backward: lattice {_speed(own, 'both')} M head-tokens/s, "
             f"{row['title']} {_speed(row, 'both')}: {rate(own, 'both') / rate(row, 'both'):.1f}x (asked {asked}x)"
             for row in peers if row is not own]
    return "\n".join(lines)


def text(figures, asked):
    parts = [forms_table(figures["rows"]), lengths_table(figures["lengths"])]
    if figures["peers"]:
        parts.append(ratios(figures["peers"], asked))
    parts += [f"FAILED {failure}" for failure in figures["failures"]]
    return "\n" + "\n\n".join(part for part in parts if part)
