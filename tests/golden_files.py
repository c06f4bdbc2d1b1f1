"""Loads the golden vectors and applies their own rule of judgement (tests/golden/README.md)."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

FOLDER = Path(__file__).resolve().parent / "golden"

GRADIENT_OF = {"dS0": "S0", "dK": "K", "dV": "V", "dQ": "Q", "dgamma": "gamma", "dmu": "mu", "dlam": "lam",
               "digate": "igate", "dfgate": "fgate", "dn0": "n0", "dm0": "m0"}


@dataclass
class Golden:
    name: str
    meta: dict
    tensors: dict  # float64 NumPy arrays

    def __getitem__(self, key):
        return self.tensors[key]

    def get(self, key):
        return self.tensors.get(key)

    def leaf(self, key, dtype):
        """The input as a torch leaf of the given dtype, or None when the file has no such tensor."""
        x = self.get(key)
        return None if x is None else torch.tensor(x, dtype=dtype).requires_grad_()

    def cotangent(self, key, dtype):
        return torch.tensor(self.tensors[key], dtype=dtype)

    def tolerance(self, key, dtype):
        if dtype == torch.float64:
            return max(1e-11, 100.0 * self.meta.get("float64_noise", {}).get(key, 0.0))
        floor = 1e-4 if "mlstm" in self.name else 1e-5
        return max(floor, 20.0 * self.meta.get("float32_rel_err", {}).get(key, 0.0))

    def judge(self, key, value, dtype=torch.float64):
        """Raises unless max|value - reference| <= tolerance * max|reference|."""
        value = value.detach().double().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        reference = self.tensors[key]
        assert value.shape == reference.shape, f"{self.name}: {key} is {value.shape}, reference is {reference.shape}"
        error = np.abs(value - reference).max()
        allowed = self.tolerance(key, dtype) * np.abs(reference).max()
        # NaN compares false, so a NaN anywhere fails here.
        assert error <= allowed, f"{self.name}: {key} is off by {error:.3e}, allowed {allowed:.3e} in {dtype}"


def load(name):
    with safe_open(FOLDER / f"{name}.safetensors", framework="numpy") as f:
        meta = json.loads(f.metadata()["json"])
        return Golden(name, meta, {key: f.get_tensor(key) for key in f.keys()})


def names(prefix):
    found = sorted(path.stem for path in FOLDER.glob(f"{prefix}*.safetensors"))
    assert found, f"no golden file starts with {prefix}"
    return found
