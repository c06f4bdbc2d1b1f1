"""What one step does to a Lattice memory, in NumPy float64: the figures of src/runtime/step_figures.h.

    python tests/oracle/figures_ref.py      # writes tests/golden/figures.safetensors
"""

import json
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle import lattice_ref, samples

FILE = Path(__file__).resolve().parents[1] / "golden" / "figures.safetensors"
# (objective, normalize, lam)
CASES = [(objective, normalize, lam) for objective in ("dec", "enc", "sim") for normalize in ("token", "none")
         for lam in (0.0, 0.125)]
TOKENS, SLOTS, WIDTH = 6, 5, 7


def length(x):
    return np.sqrt((x * x).sum(-1))


def step_figures(S, k, v, gamma, mu, lam, *, objective, normalize):
    """One token of one head. Returns S_new and the figures by name."""
    one = np.asarray(gamma), np.asarray(mu), np.asarray(lam) if lam > 0 else None
    S_new, step = lattice_ref.exact_step(S, k, v, *one, objective=objective, normalize=normalize)
    slot_write = length(S_new - S) / length(S_new)
    slot_novelty = length(step["U"]) / length(step["h"])
    read = k @ S
    return S_new, {
        "slot_write": slot_write,
        "write": np.linalg.norm(S_new - S) / np.linalg.norm(S_new),
        "answer": read @ v / (length(read) * length(v)),
        "slot_novelty": slot_novelty,
        "novelty": (slot_write * slot_novelty).sum() / slot_write.sum(),
        "slot_beta": step["beta"],
        "beta": step["beta"].mean(),
    }


def case_name(objective, normalize, lam):
    return f"{objective}_{normalize}{'_lam' if lam > 0 else ''}"


def tensors():
    """Inputs and figures of every case. Inputs and states are float32 values: what the runtime gets."""
    out = {}
    for seed, (objective, normalize, lam) in enumerate(CASES):
        S, K, V, _, gamma, mu = (x.astype(np.float32).astype(np.float64)
                                 for x in samples.one_head(TOKENS, SLOTS, WIDTH, seed))
        S = (S * np.linspace(0.5, 2.0, SLOTS)[:, None]).astype(np.float32).astype(np.float64)
        steps = {key: [] for key in ("before", "after")}
        for t in range(TOKENS):
            S_new, figures = step_figures(S, K[t], V[t], gamma[t], mu[t], lam, objective=objective, normalize=normalize)
            steps["before"].append(S)
            steps["after"].append(S_new)
            for key, value in figures.items():
                steps.setdefault(key, []).append(value)
            S = S_new.astype(np.float32).astype(np.float64)
        arrays = dict(k=K, v=V, gamma=gamma, mu=mu) | {key: np.stack(value) for key, value in steps.items()}
        name = case_name(objective, normalize, lam)
        out |= {f"{name}.{key}": np.ascontiguousarray(value) for key, value in arrays.items()}
    return out


def write():
    from safetensors.numpy import save_file
    cases = [dict(name=case_name(*case), objective=case[0], normalize=case[1], lam=case[2]) for case in CASES]
    save_file(tensors(), FILE, {"json": json.dumps({"kind": "figures", "cases": cases})})


if __name__ == "__main__":
    write()
