"""What the kernels of lattice_dec need: registers, shared memory, and no spills. Every size on one target, square states on
the others."""

import json

import triton_compile

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
WHOLLY = "sm_90"
SIZES = (128, 64, 32, 16)


def shapes():
    return [(which, target, M, D) for which in ("backward", "forward") for target in TARGETS for M in SIZES for D in SIZES
            if M == D or target == WHOLLY]


def fill(path):
    """Writes what is missing in the file, shape by shape, and returns all of it."""
    rows = json.loads(path.read_text())["shapes"] if path.exists() else []
    known = {(row["which"], row["target"], row["M"], row["D"]) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    for which, target, M, D in shapes():
        if (which, target, M, D) in known:
            continue
        needs = triton_compile.resources(triton_compile.build(which, target, M=M, D=D), target)
        rows.append(dict(which=which, target=target, M=M, D=D, **needs))
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        path.write_text(f'{{"command": "./lattice bench gpu --shapes FILE", "shapes": [\n  {lines}\n]}}\n')
    return rows


def summary(rows):
    worst = max(rows, key=lambda row: (row["spills"], row["stack"], row["registers"]))
    return (f"{len(rows)} of {len(shapes())} kernels compiled; {sum(row['spills'] > 0 or row['stack'] > 0 for row in rows)} spill; "
            f"most registers {max(row['registers'] for row in rows)}, most shared memory {max(row['shared'] for row in rows)} "
            f"bytes; the worst is {worst}")
