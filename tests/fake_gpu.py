"""Fake tensors of a GPU in torch's CPU build, which lacks the guard that remembers a GPU's current device: even slicing
asks for one. That of meta tensors does nothing, and stands in for it."""

import ctypes
from pathlib import Path

import torch

_META, _CUDA = 14, 1  # c10::DeviceType
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"


def prepare():
    """Once, before the first such tensor; nothing happens where torch knows GPUs."""
    if torch.backends.cuda.is_built():
        return
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, _REGISTRY)
    if not guards[_CUDA]:
        guards[_CUDA] = guards[_META]
