"""Layers and language models around the memories, as torch modules.

>>> import torch, lattice.nn
>>> layer = lattice.nn.Lattice(width=64, heads=2, slots=16)
>>> y, state = layer(torch.randn(1, 5, 64))            # [B,T,C] -> [B,T,C]
>>> y, state = layer(torch.randn(1, 1, 64), state)     # goes on where it stopped

`Lattice` is the paper's memory; every other one that `lattice.memories()` lists is here under its name in capitals:
`DeltaNet`, `GatedDeltaNet`, `Mamba2`, `GLA`, `RWKV7`, `TTT`, `MLSTM`, `LinearAttention`, `LatticeEnc`, ..., and so is a
memory of your own after `lattice.load_memory`. `Block` adds norms, a convolution and a feed-forward part, and
`LanguageModel` is what `./lattice train` trains: their tensors have the names of its checkpoints.

What modules there are, their shapes and initial values come from the C++ code (`torch.ops.lattice.describe_model`);
everything that is computed is an operator that C++ calls as well. Modules run on the CPU, and on GPUs (docs/gpu.md: not yet
run on hardware), in float32, float64 or bfloat16; memories are float32 (or float64) whatever the weights are.
"""

from typing import Any

from lattice.nn.config import Config, load_settings
from lattice.nn.joined import JoinedMixer
from lattice.nn.layers import GateLinear, Norm, ShortConv, initialize
from lattice.nn.mixer import Lattice, MemoryLayer, Mixer, layer_class
from lattice.nn.model import Attention, Block, FeedForward, LanguageModel, State

__all__ = ["Attention", "Block", "Config", "FeedForward", "GateLinear", "JoinedMixer", "LanguageModel", "Lattice", "MemoryLayer", "Mixer",
           "Norm", "ShortConv", "State", "initialize", "load_settings"]


def __getattr__(name: str) -> Any:
    """The layer of the memory with this name."""
    layer = layer_class(name)
    if layer is None:
        raise AttributeError(f"module 'lattice.nn' has no attribute {name!r}")
    globals()[name] = layer  # so that it is made once, and found again by pickle
    return layer
