"""What a model is. Keys, defaults, checks and the list of tensors are those of the C++ code (src/model)."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from lattice.ops import memories


class Tensor(NamedTuple):
    """One tensor of a model, as `describe_model` lists it."""

    name: str
    shape: list[int]
    part: str  # embedding, mixer, ...: for tables
    layer: str  # what it is a weight or bias of: embedding, linear, gate, convolution, norm, or none
    decay: bool  # weight decay applies
    init: dict[str, Any]  # the kind of its initial values, and two numbers


def load_settings(path: str | os.PathLike, overrides: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """The sections model, train and data of a TOML file, or of a file of configs/ by its name, such as "tiny" or "110m", with
    "section.key=value"s applied: what `./lattice train --config path --set section.key=value` works with."""
    return json.loads(torch.ops.lattice.load_config(os.fspath(path), list(overrides)))


def _memory(name: str) -> dict[str, Any]:
    return next(memory for memory in memories() if memory["name"] == name)


class Config:
    """The keys of `[model]` in a TOML file, and what follows from them.

    >>> config = Config(mixer="deltanet", vocab_size=257, layers=2, width=64, heads=2)
    >>> config.slots, config.head_slots
    (0, 32)

    Keys that are left out have the defaults that `./lattice train --help` shows. A ValueError says what is wrong with
    a key. Layers may differ: mixers="lattice_dec, transformer" alternates the two. `head_width`, `head_slots` and `ffn_width` are sizes with the zeros among the keys replaced.
    """

    head_width: int
    head_slots: int
    ffn_width: int
    layer_mixers: list[dict[str, Any]]  # of every layer: mixer, window and sinks, see layer()

    def __init__(self, **keys: Any):
        description = json.loads(torch.ops.lattice.describe_model(json.dumps(keys)))
        self.keys: dict[str, Any] = description.pop("config")
        self._tensors = [Tensor(**tensor) for tensor in description.pop("tensors")]
        self.__dict__.update(self.keys, **description)
        self.memory: dict[str, Any] = _memory(self.layer_mixers[0]["mixer"])

    def __getattr__(self, name: str) -> Any:  # for type checkers: every key is an attribute
        raise AttributeError(f"a model has no key {name!r}")

    @classmethod
    def from_checkpoint(cls, directory: str | os.PathLike) -> Config:
        """That of the config.json in a directory."""
        return cls(**json.loads(torch.ops.lattice.read_model_config(os.fspath(directory))))

    @classmethod
    def preset(cls, name: str | os.PathLike, **keys: Any) -> Config:
        """The `[model]` of a file of configs/, such as "tiny" or "110m", or of another TOML file, with some keys changed."""
        return cls(**load_settings(name)["model"] | keys)

    def replace(self, **keys: Any) -> Config:
        """The same with some keys changed."""
        return Config(**self.keys | keys)

    def layer(self, index: int) -> Config:
        """The same for one layer: `mixer` is the name of its memory, described by `memory`; `window` and `sinks` are 0
        where it has no "+window". Keys and tensors stay those of the whole model."""
        own = copy.copy(self)
        own.__dict__.update(self.layer_mixers[index], memory=_memory(self.layer_mixers[index]["mixer"]))
        return own

    def tensors(self, prefix: str = "") -> list[Tensor]:
        """All tensors whose names begin with `prefix`, which is taken off, in the order of the forward pass."""
        return [t._replace(name=t.name.removeprefix(prefix)) for t in self._tensors if t.name.startswith(prefix)]

    def rope_rates(self, pairs: int) -> torch.Tensor:
        """Radians per position of every pair of features that rotary positions turn, float64 [pairs]."""
        return torch.ops.lattice.rope_rates(self.to_json(), pairs)

    def to_json(self) -> str:
        return json.dumps(self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.keys == other.keys

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{key}={value!r}' for key, value in self.keys.items())})"
