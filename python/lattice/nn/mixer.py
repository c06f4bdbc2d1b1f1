"""The layer around a memory: projections, convolutions, gates, recurrence, gated norm."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from lattice.nn.config import Config
from lattice.nn.layers import (Norm, ShortConv, add_layers, check_sequences, full_precision, hide_padding,
                               initialize, positions, project, wide)
from lattice.ops import memories

# What a layer carries from token to token, by name; a layer of another kind has other names.
State = dict[str, torch.Tensor]


class Recurrence(nn.Module):
    """What layers around a memory share: its gates, its initial state and the recurrence itself."""

    log_decay: nn.Parameter  # where the memory has them
    state0: nn.Parameter

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        memory = config.memory
        self.objective, self.rule = memory["objective"], memory["recur_name"]
        self.learned_state, self.scales_values = memory["learned_state"], memory["step_scales_values"]
        self.gate_infos = memory["gates"]
        # The linear layers that make each gate, one behind the other.
        self.gate_layers = {gate["name"]: gate["layers"] for gate in self.gate_infos if gate["layers"]}

    def _gates(self, x, mask):
        """The gates by name, and the step that scales the values. In full precision; at padding nothing is written and
        nothing forgotten."""
        with full_precision(x.device):
            projected = []
            for names in self.gate_layers.values():
                u = x
                for name in names:
                    u = getattr(self, name)(u)
                projected.append(u)
            values = torch.ops.lattice.gates(self.config.mixer, projected, self.config.heads,
                                             wide(self.log_decay) if hasattr(self, "log_decay") else None)
        gates = dict(zip(self.gate_layers, values))
        if mask is not None:
            gates = {g["name"]: hide_padding(gates[g["name"]], mask, g["idle"]) for g in self.gate_infos if g["name"] in gates}
        return gates, values[-1] if self.scales_values else None

    def _initial(self, x, old, cu_seqlens):
        if "memory" in old:
            return old["memory"]
        count = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        return wide(self.state0).expand(count, -1, -1, -1) if self.learned_state else None

    def _remember(self, q, k, v, gates, state, cu_seqlens):
        """The recurrence: y [B,T,H,D] and the state after it."""
        c = self.config
        shrinkage = torch.full((), c.lam, dtype=q.dtype, device=q.device).expand(q.shape[:3]) if c.lam > 0 else None
        by_role = {g["role"]: gates.get(g["name"]) for g in self.gate_infos} | {"shrink": shrinkage}
        if self.objective is not None:
            return torch.ops.lattice.scan(q, k, v, by_role["write"], by_role["forget"], state, shrinkage, cu_seqlens,
                                          self.objective, c.normalize, c.method, c.chunk, c.sweeps)
        values = [by_role["shrink"] if g["role"] == "shrink" else gates.get(g["name"]) for g in self.gate_infos]
        return torch.ops.lattice.recur_with(self.rule, q, k, v, values, state, cu_seqlens)


class Mixer(Recurrence):
    """A layer over time around any recurrent memory: `y, state = mixer(x, state)`.

    x, y [B,T,C]. state None: from the start, which for most memories is a parameter. A state holds conv_qk [B,W-1,H*M]
    (and conv_v [B,W-1,C]), the last inputs of the convolutions, and memory [B,H,M,D] (mlstm: [B,H,M*D+M+1]), all float32
    or float64; with model.rope_period also position [B]. Gradients flow through it; detach what you keep for later.
    Splitting a text anywhere gives the same result.

    cu_seqlens (int32 or int64 [N+1], from 0 to T): x is [1,T,C], N texts one after the other, each from the start or from
    its own state [N,...]. mask (bool [B,T]): False is padding before or after a text; it reaches neither the other tokens
    nor the state, and its y means nothing.
    """

    qk: nn.Linear
    v: nn.Linear
    gate: nn.Linear
    out: nn.Linear
    conv_q: ShortConv
    conv_k: ShortConv
    conv_v: ShortConv  # where the memory has one; the same holds for the next
    skip: nn.Parameter
    out_norm: Norm

    def __init__(self, config: Config, layer: int = 0, *, init: bool = True, seed: int | None = None):
        """The mixer of one block of a model. init False leaves the parameters unset, for who sets them anyway."""
        super().__init__(config := config.layer(layer))
        self.rope_rates = config.rope_rates(config.head_slots // 2)
        memory = config.memory
        if memory["attention"]:
            raise ValueError(f"[nn] {memory['name']} is no recurrent memory; use lattice.nn.Attention")
        if config.block != "paper":
            raise ValueError("[nn] this layer has the projections of attention (block = \"attention\"); use lattice.nn.JoinedMixer")
        self.has_conv_v, self.has_skip = memory["conv_v"], memory["skip"]
        prefix = f"blocks.{layer}.mixer."
        add_layers(self, config.tensors(prefix), config.norm_eps)
        if init:
            initialize(self, config, seed, prefix)

    def forward(self, x: torch.Tensor, state: State | None = None, *, cu_seqlens: torch.Tensor | None = None,
                mask: torch.Tensor | None = None) -> tuple[torch.Tensor, State]:
        x, mask = check_sequences(x, cu_seqlens, mask)
        old, new = state or {}, {}
        qk, v, gate = project(x, self.qk, self.v, self.gate)
        q, k = self._queries_and_keys(hide_padding(qk, mask), old, new, cu_seqlens, mask)
        v = self._values(hide_padding(wide(v), mask), old, new, cu_seqlens, mask)
        if mask is not None:
            k, v = hide_padding(k, mask), hide_padding(v, mask)
        gates, step = self._gates(x, mask)
        written = v * step.unsqueeze(-1) if self.scales_values else v
        y, new["memory"] = self._remember(q, k, written, gates, self._initial(x, old, cu_seqlens), cu_seqlens)
        if self.has_skip:
            y = y + wide(self.skip).unsqueeze(-1) * v
        y = torch.ops.lattice.gated_layer_norm(y.flatten(-2), gate, wide(self.out_norm.weight),
                                               wide(self.out_norm.bias), self.out_norm.eps)
        return project(y, self.out)[0], new

    def _queries_and_keys(self, qk, old, new, cu_seqlens, mask):
        c, past = self.config, old.get("conv_qk")
        q, k = torch.ops.lattice.queries_and_keys(
            qk, wide(self.conv_q.weight), wide(self.conv_q.bias), wide(self.conv_k.weight), wide(self.conv_k.bias),
            c.head_slots, c.qk_norm, c.conv_activation, past, cu_seqlens)
        new["conv_qk"] = self.conv_q.next_past(qk, past, cu_seqlens, mask)
        if c.rope_period > 0:
            at, new["position"] = positions(qk, old.get("position"), cu_seqlens, mask)
            q, k = (torch.ops.lattice.rotate(x, at, self.rope_rates, c.rope_period) for x in (q, k))
        return q, k

    def _values(self, v, old, new, cu_seqlens, mask):
        c = self.config
        if self.has_conv_v:
            v, new["conv_v"] = self.conv_v(v, old.get("conv_v"), cu_seqlens=cu_seqlens, mask=mask)
            if c.conv_activation != "none":
                v = torch.ops.lattice.activate(v, c.conv_activation)
        v = v.unflatten(-1, (c.heads, c.head_width))
        return v if c.v_norm == "none" else torch.ops.lattice.normalize_vectors(v, c.v_norm)

    def extra_repr(self) -> str:
        c = self.config
        return f"{c.mixer}, width={c.width}, heads={c.heads}, slots={c.head_slots}"


class MemoryLayer(Mixer):
    """A mixer by itself, for a model of your own: `layer(x, state)`, see Mixer.

    width C, a multiple of heads; slots M of every head, None for its width C/H. Other keys of a model may be given by
    name: conv_width, qk_norm, gamma_bias, state_init, lam, ... (docs/training.md); layers, where the model has many, makes
    the initial output smaller.
    """

    memory = ""

    def __init__(self, width: int, heads: int, slots: int | None = None, *, seed: int | None = None, **keys: Any):
        keys = {"mixer": self.memory, "layers": 1, "vocab_size": 1} | keys
        super().__init__(Config(width=width, heads=heads, slots=slots or 0, **keys), seed=seed)


class Lattice(MemoryLayer):
    """The paper's memory: slots of constant length that are written only by what they do not yet hold.

    objective "dec" (the default), "enc" or "sim"; the rest is MemoryLayer's.

    >>> layer = Lattice(width=64, heads=2, slots=16)
    >>> y, state = layer(torch.randn(1, 5, 64))
    """

    def __init__(self, width: int, heads: int, slots: int | None = None, *, objective: str = "dec",
                 seed: int | None = None, **keys: Any):
        names = {m["objective"]: m["name"] for m in memories() if m["objective"] is not None}
        if objective not in names:
            raise ValueError(f"[nn] objective is {objective!r}; the choices are {', '.join(map(repr, names))}")
        super().__init__(width, heads, slots, seed=seed, mixer=names[objective], **keys)


def layer_class(name: str) -> type[MemoryLayer] | None:
    """The layer of the memory that is called so: DeltaNet is that of deltanet, GatedDeltaNet of gated_deltanet."""
    if not name[:1].isupper():
        return None
    for memory in memories():
        if memory["name"].replace("_", "") == name.lower() and not memory["attention"]:
            doc = f"{memory['summary']}.\n\n{MemoryLayer.__doc__}"
            return type(name, (MemoryLayer,), {"memory": memory["name"], "__doc__": doc, "__module__": "lattice.nn"})
    return None
