"""Finds the compiled libraries: beside this file in an installed wheel, in build/release of the source tree."""

import os
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def find(name: str, variable: str) -> Path:
    """The library of that name, or what the environment variable says; ImportError says where it looked."""
    if variable in os.environ:
        places = [Path(os.environ[variable])]
    else:
        places = [_HERE / "lib" / name, _HERE.parents[1] / "build" / "release" / "lib" / name]
    for place in places:
        if place.exists():
            return place
    looked = ", ".join(map(str, places))
    raise ImportError(f"the compiled library {name} was not found (looked at {looked}); install the wheel, or in the source "
                      "tree run ./lattice setup to build it")


def load_operators() -> None:
    """Registers torch.ops.lattice.*, unless the library was built for another torch."""
    import torch

    path = find("liblattice_ops.so", "LATTICE_LIBRARY")
    note = path.with_suffix(".torch")  # beside it: the version of torch it was built for
    built = note.read_text().strip() if note.exists() else None
    found = torch.__version__.partition("+")[0]
    if built is not None and built != found:
        raise ImportError(f"the operators of lattice were built for torch {built}, but torch {torch.__version__} is installed, "
                          "and libtorch promises no binary compatibility between versions; install "
                          f"torch=={built}, or build lattice for the torch you have")
    torch.ops.load_library(str(path))
