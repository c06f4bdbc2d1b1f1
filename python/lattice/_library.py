"""Finds and loads the compiled operators."""

import os
from pathlib import Path

import torch

_NAME = "liblattice_ops.so"


def _candidates():
    if "LATTICE_LIBRARY" in os.environ:
        yield Path(os.environ["LATTICE_LIBRARY"])
        return
    here = Path(__file__).resolve().parent
    yield here / "lib" / _NAME  # an installed wheel
    yield here.parents[1] / "build" / "release" / "lib" / _NAME  # the source tree


def load():
    """Registers torch.ops.lattice.*; ImportError says where it looked."""
    paths = list(_candidates())
    for path in paths:
        if path.exists():
            torch.ops.load_library(str(path))
            return
    looked = ", ".join(str(path) for path in paths)
    raise ImportError(f"the compiled operators were not found (looked at {looked}); run ./lattice setup to build them")
