"""Makes `lattice`, `oracle` and `golden_files` importable from a checkout."""

import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "python"):
    sys.path.insert(0, str(folder))

# Tensors in tests are small. Two threads would mostly wait for each other at the end of every operator, which on a busy
# machine made tests of lattice.nn up to 20 times slower. Tests of threads say how many they want.
torch.set_num_threads(1)
