"""Blocks and the language model."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from lattice.nn.config import Config
from lattice.nn.joined import JoinedMixer
from lattice.nn.layers import (Norm, ShortConv, add_layers, autocast_on, check_sequences, hide_padding, initialize,
                               positions, project, wide)
from lattice.nn.mixer import Mixer, State


class Attention(nn.Module):
    """Causal softmax attention with rotary positions: `y, state = attention(x, state)`, x and y [B,T,C].

    A state holds keys and values [B,P,kv_heads,D], which grow, position [B], and with a mask keep [B,P]. mask and cu_seqlens are
    those of Mixer; after packed texts there is no going on.
    """

    q: nn.Linear
    k: nn.Linear
    v: nn.Linear
    out: nn.Linear

    def __init__(self, config: Config, layer: int = 0, *, init: bool = True, seed: int | None = None):
        super().__init__()
        self.config = config = config.layer(layer)
        self.rope_rates = config.rope_rates(config.head_width // 2)
        prefix = f"blocks.{layer}.mixer."
        add_layers(self, config.tensors(prefix), config.norm_eps)
        if init:
            initialize(self, config, seed, prefix)

    def forward(self, x: torch.Tensor, state: State | None = None, *, cu_seqlens: torch.Tensor | None = None,
                mask: torch.Tensor | None = None) -> tuple[torch.Tensor, State]:
        x, mask = check_sequences(x, cu_seqlens, mask)
        old = state or {}
        if "packed" in old:
            raise ValueError("[nn] attention over packed texts leaves no state to go on from; run the texts one by one")
        q, k, v = (wide(y).unflatten(-1, (-1, self.config.head_width)) for y in project(x, self.q, self.k, self.v))
        at, length = positions(x, old.get("position"), cu_seqlens, mask)
        q, k = (torch.ops.lattice.rotate(y, at, self.rope_rates) for y in (q, k))
        keep = self._keep(x, old, mask)
        if keep is not None:
            v = hide_padding(v, mask)
        y, keys, values = torch.ops.lattice.attention(q, k, v, old.get("keys"), old.get("values"), cu_seqlens, keep)
        new = dict(keys=keys, values=values, position=length)
        if keep is not None:
            new["keep"] = keep
        if cu_seqlens is not None:
            new = dict(packed=cu_seqlens)
        return project(y.flatten(-2).to(x.dtype), self.out)[0], new

    def _keep(self, x, old, mask):
        """Which keys, cached ones included, are those of tokens; None when all are."""
        if mask is None and "keep" not in old:
            return None
        now = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        if "keep" in old:
            return torch.cat([old["keep"], now], 1)
        if "keys" in old:
            return torch.cat([now.new_ones(old["keys"].shape[:2]), now], 1)
        return now


class FeedForward(nn.Module):
    """SwiGLU: [B,T,C] -> [B,T,C]."""

    gate: nn.Linear
    up: nn.Linear
    down: nn.Linear

    def __init__(self, config: Config, layer: int = 0, *, init: bool = True, seed: int | None = None):
        super().__init__()
        prefix = f"blocks.{layer}.ffn."
        add_layers(self, config.tensors(prefix), config.norm_eps)
        if init:
            initialize(self, config, seed, prefix)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return project(torch.ops.lattice.silu_times(*project(x, self.gate, self.up)), self.down)[0]


class Block(nn.Module):
    """One block of a model, x [B,T,C] -> [B,T,C]: `x, state = block(x, state)`.

        x += conv(norm(x));   x += mixer(norm(x));   x += feed_forward(norm(x))

    without the first part in a transformer, or where the block is that of attention. The sums are float32 inside, whatever the type of x. state, cu_seqlens and mask
    are those of Mixer; a state has pre_conv [B,W-1,C] beside the mixer's.
    """

    pre_norm: Norm  # this and the next where the mixer is a recurrent memory
    pre_conv: ShortConv
    mix_norm: Norm
    ffn_norm: Norm

    def __init__(self, config: Config, layer: int = 0, *, init: bool = True, seed: int | None = None):
        super().__init__()
        prefix = f"blocks.{layer}."
        outer = [t for t in config.tensors(prefix) if not t.name.startswith(("mixer.", "ffn."))]
        add_layers(self, outer, config.norm_eps)
        own = config.layer(layer)
        attention = own.memory["attention"] and own.window == 0
        kind = Attention if attention else Mixer if own.block == "paper" else JoinedMixer
        self.mixer = kind(config, layer, init=False)
        self.ffn = FeedForward(config, layer, init=False)
        if init:
            initialize(self, config, seed, prefix)

    def forward(self, x: torch.Tensor, state: State | None = None, *, cu_seqlens: torch.Tensor | None = None,
                mask: torch.Tensor | None = None) -> tuple[torch.Tensor, State]:
        x, mask = check_sequences(x, cu_seqlens, mask)
        old, new = state or {}, {}
        stream, norm = wide(x), self.mix_norm
        # Norms that feed matrix products are rounded as these are.
        narrow = norm.weight.dtype == torch.bfloat16 or (autocast_on(x.device) and stream.dtype == torch.float32)
        if hasattr(self, "pre_conv"):
            local, new["pre_conv"] = self.pre_conv(self.pre_norm(stream), old.get("pre_conv"), cu_seqlens=cu_seqlens, mask=mask)
            stream, u = torch.ops.lattice.add_rms_norm(stream, local, wide(norm.weight), norm.eps, narrow)
        else:
            u = torch.ops.lattice.rms_norm(stream, wide(norm.weight), norm.eps, narrow)
        mixed, mixer_state = self.mixer(u, old, cu_seqlens=cu_seqlens, mask=mask)
        stream, u = torch.ops.lattice.add_rms_norm(stream, mixed, wide(self.ffn_norm.weight), self.ffn_norm.eps, narrow)
        return (stream + wide(self.ffn(u))).to(x.dtype), new | mixer_state


class LanguageModel(nn.Module):
    """The model that `./lattice train` trains: embedding, blocks, norm, head.

    >>> model = LanguageModel(Config(vocab_size=257, layers=2, width=64, heads=2), seed=0)
    >>> logits, states = model(torch.randint(257, (1, 5)))                          # [B,T] -> [B,T,vocabulary]
    >>> loss, _ = model(torch.randint(257, (1, 5)), targets=torch.randint(257, (1, 5)))

    With the same seed it starts from the bits that the C++ trainer starts from. `states` is one state a block, to go on
    with: `model(tokens, states)`. targets int64 [B,T], negative ones not counted: the result is then the mean
    cross-entropy in nats, and the logits of a batch are never held. cu_seqlens and mask are those of Mixer.
    """

    embed: nn.Embedding
    head: nn.Linear  # unless it is tied to the embedding
    final_norm: Norm

    def __init__(self, config: Config, *, seed: int | None = None, init: bool = True):
        super().__init__()
        self.config = config
        self.recompute = False  # compute blocks again in the backward pass instead of keeping what they computed
        add_layers(self, [t for t in config.tensors() if not t.name.startswith("blocks.")], config.norm_eps)
        self.blocks = nn.ModuleList(Block(config, i, init=False) for i in range(config.layers))
        if init:
            initialize(self, config, seed)

    @classmethod
    def from_checkpoint(cls, directory: str | os.PathLike) -> LanguageModel:
        """The model in a directory with config.json and model.safetensors, such as RUN/checkpoints/latest."""
        model = cls(Config.from_checkpoint(directory), init=False)
        model.load_checkpoint(directory)
        return model

    def load_checkpoint(self, directory: str | os.PathLike) -> None:
        """Takes over the weights of a checkpoint of a model with the same config."""
        with torch.no_grad():
            torch.ops.lattice.load_weights(os.fspath(directory), self._ordered())

    def save_checkpoint(self, directory: str | os.PathLike) -> None:
        """Writes config.json and model.safetensors (float32), which every program of the project reads. To generate text
        they want the tokenizer's files beside them."""
        torch.ops.lattice.save_model(os.fspath(directory), self.config.to_json(), self._ordered())

    def decay_groups(self, weight_decay: float) -> list[dict]:
        """Parameter groups for an optimizer: those that decay, and norms, biases, gates and states that do not."""
        parts = {decay: [self.get_parameter(t.name) for t in self.config.tensors() if t.decay == decay] for decay in (True, False)}
        return [dict(params=parts[True], weight_decay=weight_decay), dict(params=parts[False], weight_decay=0.0)]

    def hidden(self, tokens: torch.Tensor, states: Sequence[State] | None = None, *, cu_seqlens: torch.Tensor | None = None,
               mask: torch.Tensor | None = None) -> tuple[torch.Tensor, list[State]]:
        """What the head sees, [B,T,C], and the states after it."""
        x = wide(self.embed(tokens))
        x, mask = check_sequences(x, cu_seqlens, mask)
        new = []
        for i, block in enumerate(self.blocks):
            state = states[i] if states is not None else None
            if self.recompute and torch.is_grad_enabled():
                x, after = checkpoint(block, x, state, cu_seqlens=cu_seqlens, mask=mask, use_reentrant=False)
            else:
                x, after = block(x, state, cu_seqlens=cu_seqlens, mask=mask)
            new.append(after)
        return self.final_norm(x), new

    def forward(self, tokens: torch.Tensor, states: Sequence[State] | None = None, *, targets: torch.Tensor | None = None,
                cu_seqlens: torch.Tensor | None = None, mask: torch.Tensor | None = None) -> tuple[torch.Tensor, list[State]]:
        hidden, new = self.hidden(tokens, states, cu_seqlens=cu_seqlens, mask=mask)
        weight = self.embed.weight if self.config.tie_embedding else self.head.weight
        if targets is None:
            return wide(F.linear(hidden.to(weight.dtype), weight)), new
        loss = torch.ops.lattice.linear_cross_entropy(hidden.flatten(0, 1), weight, targets.flatten(), autocast_on(hidden.device))
        return loss, new

    def _ordered(self) -> list[torch.Tensor]:
        return [self.get_parameter(tensor.name) for tensor in self.config.tensors()]
