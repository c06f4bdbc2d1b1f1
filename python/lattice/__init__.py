"""Lattice: a recurrent memory with a fixed number of slots, and the memories it is compared with.

>>> import torch, lattice
>>> q, k = torch.randn(2, 1, 8, 2, 4)            # [B,T,H,M]
>>> v = torch.randn(1, 8, 2, 6)                  # [B,T,H,D]
>>> gamma = torch.rand(1, 8, 2)                  # [B,T,H]
>>> state = torch.nn.functional.normalize(torch.randn(1, 2, 4, 6), dim=-1)
>>> y, state = lattice.scan(q, k, v, gamma, state=state)
>>> y.shape, state.shape
(torch.Size([1, 8, 2, 6]), torch.Size([1, 2, 4, 6]))

`lattice.runtime` runs trained models and needs no torch. So torch is imported here only where it has been imported before;
otherwise the first use of an operator does, or `import lattice.ops`, which registers torch.ops.lattice.*.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "torch" in sys.modules:
    from lattice.ops import load_memory, memories, recur, rules, scan

__all__ = ["load_memory", "memories", "recur", "rules", "scan"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Operators, and parts of the package, are loaded when they are first used."""
    if name in ("nn", "runtime"):
        return importlib.import_module(f"lattice.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'lattice' has no attribute {name!r}")
    from lattice import ops

    globals().update({operator: getattr(ops, operator) for operator in __all__})
    return globals()[name]
