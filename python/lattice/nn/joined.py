"""A window of attention and a memory of what has left it, with the projections of an attention layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from lattice.nn.config import Config
from lattice.nn.layers import add_layers, check_sequences, full_precision, hide_padding, initialize, positions, project, wide
from lattice.nn.mixer import Recurrence, State


class JoinedMixer(Recurrence):
    """The mixer of a block with `block = "attention"`: `y, state = mixer(x, state)`, x and y [B,T,C].

    Token p attends to the tokens p-window+1 .. p and to the first `sinks`; what leaves the window enters the memory, whose
    share of the output is learned. Without a window every token enters the memory at once; with the mixer
    "transformer+window" there is no memory. A state is of constant size: keys and values [B,P,kv_heads,D] of the tokens
    that are kept with their positions place [B,P], their gates, position [B], and memory [B,H,D,D]. mask is that of Mixer,
    with padding before the texts only; cu_seqlens are refused.
    """

    q: nn.Linear
    k: nn.Linear
    v: nn.Linear
    out: nn.Linear
    gate: nn.Linear  # with an output gate
    share: nn.Linear  # with a memory beside a window, and so the next
    amplitude: nn.Parameter

    def __init__(self, config: Config, layer: int = 0, *, init: bool = True, seed: int | None = None):
        super().__init__(config := config.layer(layer))
        self.has_memory = not config.memory["attention"]
        self.rope_rates = config.rope_rates(config.head_width // 2)
        prefix = f"blocks.{layer}.mixer."
        add_layers(self, config.tensors(prefix), config.norm_eps)
        if init:
            initialize(self, config, seed, prefix)

    def forward(self, x: torch.Tensor, state: State | None = None, *, cu_seqlens: torch.Tensor | None = None,
                mask: torch.Tensor | None = None) -> tuple[torch.Tensor, State]:
        if cu_seqlens is not None:
            raise ValueError("[nn] a window over packed texts is not computed; run the texts one by one, or with a mask")
        x, mask = check_sequences(x, None, mask)
        if mask is not None and not torch.compiler.is_compiling() and not bool(mask[:, -1].all()):
            raise ValueError("[nn] a layer with the projections of attention takes padding before the texts only")
        old, new = state or {}, {}
        projected = project(x, self.q, self.k, self.v, *([self.gate] if hasattr(self, "gate") else []))
        q, k, v = (wide(y).unflatten(-1, (-1, self.config.head_width)) for y in projected[:3])
        at, new["position"] = positions(x, old.get("position"), None, mask)
        q, k = (torch.ops.lattice.rotate(y, at, self.rope_rates) for y in (q, k))
        tokens = {"keys": k, "values": v} | (self._gates(x, None)[0] if self.has_memory else {})
        # Padding is at no place: no token sees it, and it never leaves the window.
        place = at if mask is None else at.masked_fill(~mask, -1)
        y = self._beside_window(x, q, tokens, place, old, new) if self.config.window else self._read(q, tokens, place >= 0, old, new)
        if hasattr(self, "gate"):
            y = y * (2 * torch.sigmoid(wide(projected[3]))).unflatten(-1, (-1, self.config.head_width))
        return project(y.flatten(-2).to(x.dtype), self.out)[0], new

    def _for_heads(self, x):
        group = self.config.heads // x.shape[2]
        return x if group == 1 else x.repeat_interleave(group, 2)

    def _read(self, q, tokens, present, old, new):
        """What the memory gives after `tokens`, of which those that are not `present` change nothing."""
        k, v = (hide_padding(tokens[name], present) for name in ("keys", "values"))
        k = torch.ops.lattice.normalize_vectors(k, "l2")
        gates = {g["name"]: hide_padding(tokens[g["name"]], present, g["idle"]) for g in self.gate_infos if g["name"] in tokens}
        y, new["memory"] = self._remember(q * self.config.head_width**-0.5, self._for_heads(k), self._for_heads(v), gates,
                                          self._initial(q, old, None), None)
        return y * wide(self.amplitude)

    def _beside_window(self, x, q, tokens, place, old, new):
        window, sinks = self.config.window, self.config.sinks
        names = list(tokens)
        every, places = tokens, place
        if "place" in old:
            every = {name: torch.cat([old[name], tokens[name]], 1) for name in names}
            places = torch.cat([old["place"], place], 1)
        self._keep(every, places, new)
        there, here = places.unsqueeze(1), place.unsqueeze(2)
        seen = (there >= 0) & (there <= here) & ((there > here - window) | (there < sinks))
        # Padding sees itself alone: a softmax of nothing is no number.
        itself = torch.eye(place.shape[1], dtype=torch.bool, device=x.device)
        itself = F.pad(itself, (places.shape[1] - place.shape[1], 0))
        keys, values = (self._for_heads(every[name]).transpose(1, 2) for name in ("keys", "values"))
        near = F.scaled_dot_product_attention(q.transpose(1, 2), keys, values, attn_mask=(seen | itself).unsqueeze(1))
        near = near.transpose(1, 2)
        if not self.has_memory:
            return near
        ready = place >= window + sinks
        # Places before this call's are ascending; those of padding stand first and are -1.
        index = torch.searchsorted(places.contiguous(), (place - window).contiguous()).clamp_max(places.shape[1] - 1)
        leaving = {name: _take(every[name], index) for name in names}
        far = self._read(q, leaving, ready, old, new)
        with full_precision(x.device):
            share = torch.sigmoid(self.share(x)) * ready.unsqueeze(-1)
        return near + share.unsqueeze(-1) * (far - near)

    def _keep(self, every, places, new):
        """The tokens that the next call needs: the sinks, and the last of the window, ascending."""
        size = self.config.window + self.config.sinks
        last = places[:, -1:]
        wanted = (places >= 0) & ((places < self.config.sinks) | (places > last - self.config.window))
        # A stable sort brings them to the end in their order.
        index = torch.sort(wanted.long(), dim=1, stable=True).indices[:, -size:]
        new["place"] = places.masked_fill(~wanted, -1).gather(1, index)
        new.update({name: _take(x, index) for name, x in every.items()})


def _take(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """x [B,P,...] at index [B,T] of every row."""
    wide_index = index.reshape(index.shape + (1,) * (x.dim() - 2))
    return x.gather(1, wide_index.expand(-1, -1, *x.shape[2:]))
