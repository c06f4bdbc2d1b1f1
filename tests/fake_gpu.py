"""Fake tensors of a GPU on a machine without one. Even slicing asks the guard that remembers a GPU's current device: torch's
CPU build has none, and that of its CUDA build wants a device. The guard of meta tensors does nothing, and stands in for it."""

import ctypes
from pathlib import Path

import torch

_META, _CUDA = 14, 1  # c10::DeviceType
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"


def prepare():
    """Once, before the first such tensor; nothing happens where there is a GPU."""
    if torch.cuda.is_available():
        return
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, _REGISTRY)
    guards[_CUDA] = guards[_META]
