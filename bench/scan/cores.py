"""One sequence on many cores: what was measured, and a model of more cores than a machine has.

Work is divided by cells, one head of one sequence each, so B * H of them keep at most as many cores busy. Dividing the
columns of a cell's state between cores would use more. Every column is updated by itself, but a slot's coefficients
depend on sums over all of its columns, so that the cores of a cell have to exchange 2 M + 1 sums a token before they can
go on. The model takes a token to cost its arithmetic divided by the cores, and an exchange for each doubling of them;
lattice_exchange measures one between two cores of this machine.
"""

import json
import subprocess

import measure

MODELLED = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


def exchange(slots):
    """Nanoseconds for two cores to hand each other a token's sums."""
    program = measure.ROOT / "build" / "release" / "bin" / "lattice_exchange"
    done = subprocess.run([program, str(slots)], capture_output=True, text=True)
    return json.loads(done.stdout)["nanoseconds"] if done.returncode == 0 else None


def by_cells(cells, cores):
    """How many times as fast as one core: rounds of `cores` cells, the last of them not full."""
    return cells / -(-cells // cores)


def by_columns(cells, cores, token, exchanged):
    """The best of all powers of two of cores for each cell, one (no division) among them."""
    best, share = by_cells(cells, cores), 2
    while share <= cores:
        doublings = share.bit_length() - 1
        faster = token / (token / share + doublings * exchanged)
        best, share = max(best, faster * by_cells(cells, max(1, cores // share))), 2 * share
    return best


def compare(rows):
    """Figures of [(threads, row)], all of one shape, the smallest number of threads first."""
    shape = rows[0][1]["shape"]
    tokens, cells = shape["T"], shape["B"] * shape["H"]
    first, base = rows[0][0], rows[0][1]["forward"]["best"]
    token = 1e9 * base / tokens / cells * by_cells(cells, first)
    exchanged = exchange(shape["M"])
    measured = [dict(threads=count, forward=base / row["forward"]["best"], both=rows[0][1]["both"]["best"] / row["both"]["best"],
                     expected=by_cells(cells, count) / by_cells(cells, first)) for count, row in rows]
    modelled = [dict(cores=count, cells=by_cells(cells, count),
                     columns=exchanged and by_columns(cells, count, token, exchanged)) for count in MODELLED]
    return dict(cells=cells, token_nanoseconds=token, exchange_nanoseconds=exchanged,
                measured=measured, modelled=modelled)


def lines(figures):
    measured = [[row["threads"], f"{row['forward']:.2f}", f"{row['both']:.2f}", f"{row['expected']:.2f}"]
                for row in figures["measured"]]
    modelled = [[row["cores"], f"{row['cells']:.1f}", f"{row['columns']:.1f}" if row["columns"] else ""]
                for row in figures["modelled"]]
    exchanged = figures["exchange_nanoseconds"]
    cost = f"two cores exchange its sums in {exchanged:.0f} ns" if exchanged else "one CPU: nothing can be exchanged"
    return "\n".join([
        "", f"One sequence of {figures['cells']} heads by threads, relative to the first:",
        measure.table(["threads", "forward", "forward+backward", "expected"], measured), "",
        f"Model: a token of a head takes {figures['token_nanoseconds']:.0f} ns forward, {cost}. Times as fast as one core:",
        measure.table(["cores", "cells divided", "columns too"], modelled)])
