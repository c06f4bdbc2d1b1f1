"""The small parts that mixers and blocks are made of."""

from __future__ import annotations

import contextlib

import torch
import torch.nn.functional as F
from torch import nn

from lattice.nn.config import Config, Tensor


def wide(x: torch.Tensor) -> torch.Tensor:
    """bfloat16 as float32; float32 and float64 stay."""
    if x.dtype == torch.float16:
        raise TypeError("[nn] float16 is not supported: its range is too small for the memories; use bfloat16 or float32")
    return x.float() if x.dtype == torch.bfloat16 else x


def autocast_on(device: torch.device) -> bool:
    """Whether matrix products are rounded to bfloat16 here."""
    if device.type == "meta" or not torch.is_autocast_enabled(device.type):
        return False
    if torch.get_autocast_dtype(device.type) != torch.bfloat16:
        raise TypeError(f"[nn] autocast to {torch.get_autocast_dtype(device.type)} is not supported; use torch.bfloat16")
    return True


def full_precision(device: torch.device):
    """Without autocast, where it is on."""
    return torch.autocast(device.type, enabled=False) if autocast_on(device) else contextlib.nullcontext()


class Norm(nn.Module):
    """The weight [C], and for a LayerNorm the bias [C], of a norm. forward is RMSNorm; blocks and mixers use operators
    that fuse the norm with what stands before it."""

    def __init__(self, width: int, bias: bool, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.register_parameter("bias", nn.Parameter(torch.zeros(width)) if bias else None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.lattice.rms_norm(wide(x), wide(self.weight), self.eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


def project(x: torch.Tensor, *layers: nn.Module) -> list[torch.Tensor]:
    """layer(x) of each of these linear layers. Plain ones are computed together, by the products that C++ uses: one pass
    over x, one product for its gradient. Others, such as those that LoRA or a quantiser puts there, are called."""
    if all(_is_plain(layer) for layer in layers):
        return torch.ops.lattice.projections(x, [layer.weight for layer in layers], autocast_on(x.device))
    return [layer(x) for layer in layers]


def _is_plain(layer: nn.Module) -> bool:
    """A linear layer as torch has it, which nobody watches, in a type whose products are ours."""
    return (type(layer) is nn.Linear and layer.bias is None and layer.weight.dtype in (torch.float32, torch.float64, torch.bfloat16)
            and not (layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks))


class GateLinear(nn.Linear):
    """A linear layer that is computed in float32 whatever the types: gates decide what is forgotten."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with full_precision(x.device):
            return F.linear(wide(x), wide(self.weight), None if self.bias is None else wide(self.bias))


class ShortConv(nn.Module):
    """Depthwise causal convolution over time: x [B,T,C] -> y [B,T,C], in float32.

    weight [C,W], newest token last; bias [C]. `y, past = conv(x, past)`: past [B,W-1,C] are the inputs before x, None
    at the start. With cu_seqlens (int [N+1], from 0 to T) x is [1,T,C], N sequences start anew, and past is [N,W-1,C].
    With mask (bool [B,T], False is padding before or after a text) padding counts as zeros and is no past.
    """

    def __init__(self, channels: int, width: int = 4):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, width))
        self.bias = nn.Parameter(torch.zeros(channels))
        nn.init.uniform_(self.weight, -(width**-0.5), width**-0.5)

    def forward(self, x: torch.Tensor, past: torch.Tensor | None = None, *, cu_seqlens: torch.Tensor | None = None,
                mask: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        x = hide_padding(wide(x), mask)
        y = torch.ops.lattice.causal_conv(x, wide(self.weight), wide(self.bias), past, cu_seqlens)
        return y, self.next_past(x, past, cu_seqlens, mask)

    def next_past(self, x, past, cu_seqlens=None, mask=None) -> torch.Tensor:
        """The W-1 inputs before what follows x, in float32."""
        keep = self.weight.shape[1] - 1
        x = wide(x)
        if cu_seqlens is not None:
            return _packed_past(x, past, cu_seqlens, keep)
        if mask is None and x.shape[1] >= keep:
            return x[:, x.shape[1] - keep:].clone()
        before = x.new_zeros(x.shape[0], keep, x.shape[2]) if past is None else past
        x = torch.cat([before, x], 1)
        if mask is None:
            return x[:, x.shape[1] - keep:].clone()
        end = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(1)  # behind the last token
        rows = end.unsqueeze(1) + torch.arange(keep, device=x.device)
        return x.gather(1, rows.unsqueeze(-1).expand(-1, -1, x.shape[2]))

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, width={self.weight.shape[1]}"


def _packed_past(x, past, cu_seqlens, keep):
    """[N,keep,C]: of every sequence the last inputs, from its past where it is shorter than that."""
    starts, ends = cu_seqlens[:-1].long(), cu_seqlens[1:].long()
    count = starts.shape[0]
    before = x.new_zeros(count, keep, x.shape[2]) if past is None else past
    at = ends.unsqueeze(1) - keep + torch.arange(keep, device=x.device)
    in_past = torch.arange(count, device=x.device).unsqueeze(1) * keep + keep + at - starts.unsqueeze(1)
    rows = torch.where(at >= starts.unsqueeze(1), count * keep + at, in_past)
    return torch.cat([before.flatten(0, 1), x[0]])[rows]


def hide_padding(x: torch.Tensor, mask: torch.Tensor | None, value: float = 0.0) -> torch.Tensor:
    """x [B,T,...] with `value` where mask [B,T] is False, whatever stood there."""
    if mask is None:
        return x
    return x.masked_fill(~mask.reshape(mask.shape + (1,) * (x.dim() - 2)), value)


def check_sequences(x: torch.Tensor, cu_seqlens: torch.Tensor | None,
                    mask: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    """x with zeros for padding, and the mask as bool; ValueError unless every row of it has its padding before or after the text.

    Zeros, because the gradient of a weight is a product with x, and no gradient times no number is no number."""
    if mask is None:
        return x, None
    if cu_seqlens is not None:
        raise ValueError("[nn] mask and cu_seqlens exclude each other: packed sequences have no padding")
    if mask.shape != x.shape[:2]:
        raise ValueError(f"[nn] mask must be [B,T] = {list(x.shape[:2])}, got {list(mask.shape)}")
    mask = mask.bool()
    if not torch.compiler.is_compiling() and not mask.is_meta and mask.shape[1] > 1:
        begins = mask[:, 1:] & ~mask[:, :-1]
        if bool((begins.sum(1) + mask[:, 0] > 1).any()):
            raise ValueError("[nn] the mask has a hole: a text must be one run of True in its row, with padding before or "
                             "after it; pass texts without gaps")
    return hide_padding(x, mask), mask


def positions(x: torch.Tensor, before: torch.Tensor | None, cu_seqlens: torch.Tensor | None,
              mask: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The positions [B,T] of tokens in their texts, and the lengths [B], or [N] of packed texts, after them. `before` are
    the lengths before x."""
    B, T = x.shape[:2]
    steps = torch.arange(T, device=x.device)
    if cu_seqlens is not None:
        starts = cu_seqlens.long()
        before = starts.new_zeros(starts.shape[0] - 1) if before is None else before
        text = torch.searchsorted(starts, steps, right=True) - 1
        return (steps - starts[text] + before[text]).unsqueeze(0), before + starts.diff()
    before = steps.new_zeros(B) if before is None else before
    if mask is None:
        return before.unsqueeze(1) + steps, before + T
    return (before.unsqueeze(1) + mask.cumsum(1) - 1).clamp_min(0), before + mask.sum(1)


def _make(layer: str, shapes: dict[str, list[int]], eps: float) -> nn.Module:
    """The module of a kind of layer; its values are not yet set."""
    shape, bias = shapes["weight"], "bias" in shapes
    device = torch.get_default_device()
    if layer == "embedding":
        return nn.utils.skip_init(nn.Embedding, *shape, device=device)
    if layer in ("linear", "gate"):
        kind = nn.Linear if layer == "linear" else GateLinear
        return nn.utils.skip_init(kind, shape[1], shape[0], bias=bias, device=device)
    if layer == "convolution":
        return ShortConv(*shape)
    return Norm(shape[0], bias, eps)


def add_layers(module: nn.Module, tensors: list[Tensor], eps: float) -> None:
    """Gives a module the layers and parameters of a list of tensors."""
    groups: dict[str, list[tuple[str, Tensor]]] = {}
    for tensor in tensors:
        name, _, rest = tensor.name.partition(".")
        groups.setdefault(name, []).append((rest, tensor))
    for name, parts in groups.items():
        first = parts[0][1]
        if first.layer == "none":
            module.register_parameter(name, nn.Parameter(torch.empty(first.shape)))
        else:
            module.add_module(name, _make(first.layer, {rest: tensor.shape for rest, tensor in parts}, eps))


@torch.no_grad()
def initialize(module: nn.Module, config: Config, seed: int | None = None, prefix: str = "") -> None:
    """Sets the parameters of a model, or of the part of it whose names begin with `prefix`, to the initial values that
    `./lattice train` gives them with this seed; None draws one from torch's generator."""
    if seed is None:
        seed = int(torch.randint(2**62, (), device="cpu"))
    parameters = [module.get_parameter(tensor.name) for tensor in config.tensors(prefix)]
    if all(parameter.is_meta for parameter in parameters):
        return
    for parameter, value in zip(parameters, torch.ops.lattice.initial_tensors(config.to_json(), seed, prefix)):
        parameter.copy_(value)
