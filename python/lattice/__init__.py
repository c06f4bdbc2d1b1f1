"""Lattice: a recurrent memory with a fixed number of slots, and the memories it is compared with.

>>> import torch, lattice
>>> q, k = torch.randn(2, 1, 8, 2, 4)            # [B,T,H,M]
>>> v = torch.randn(1, 8, 2, 6)                  # [B,T,H,D]
>>> gamma = torch.rand(1, 8, 2)                  # [B,T,H]
>>> state = torch.nn.functional.normalize(torch.randn(1, 2, 4, 6), dim=-1)
>>> y, state = lattice.scan(q, k, v, gamma, state=state)
>>> y.shape, state.shape
(torch.Size([1, 8, 2, 6]), torch.Size([1, 2, 4, 6]))
"""

from lattice._library import load as _load

_load()

from lattice.ops import load_memory, memories, recur, rules, scan  # noqa: E402  (the operators must be loaded first)
from lattice.triton.dispatch import register as _register  # noqa: E402

_register()

__all__ = ["load_memory", "memories", "recur", "rules", "scan"]
__version__ = "0.1.0"
