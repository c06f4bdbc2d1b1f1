"""What a model is, for transformers: the keys of `[model]` as the C++ code has them, under HF's names where it has some."""

import json

import torch
from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

import lattice  # noqa: F401  (registers the operators)
from lattice.hf.cache import LAYER_TYPE
from lattice.nn import Config

# The keys and their defaults; a model needs a vocabulary, and 257 is that of bytes.
_DEFAULTS = json.loads(torch.ops.lattice.describe_model(json.dumps({"vocab_size": 257})))["config"]



def _field_type(value):
    return int | float if isinstance(value, float) else type(value)


# A dataclass with one field for every key, so that transformers saves, compares and prints them.
_Keys = type("_Keys", (PreTrainedConfig,), {
    "__module__": __name__,
    "__annotations__": {name: _field_type(value) for name, value in _DEFAULTS.items()},
    **_DEFAULTS,
})  # fmt: skip


@strict
class LatticeConfig(_Keys):
    """config.json of a checkpoint. `./lattice train --help` explains the keys of `[model]`.

    >>> LatticeConfig(mixer="deltanet", layers=2, width=64).num_hidden_layers
    2

    HF's names work as well: hidden_size is width, num_hidden_layers is layers, num_attention_heads is heads. Keys that a
    model of this version does not know are refused, as the C++ programs refuse them: they may change what it computes.
    """

    model_type = "lattice"
    attribute_map = {"num_hidden_layers": "layers", "hidden_size": "width", "num_attention_heads": "heads",
                     "intermediate_size": "hidden", "tie_word_embeddings": "tie_embedding",
                     "initializer_range": "init_std", "rms_norm_eps": "norm_eps"}  # fmt: skip
    base_model_fsdp_plan = {"embed": "free_full_weight", "blocks.*": "free_full_weight", "final_norm": "keep_full_weight"}

    use_cache: bool = True
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """Of the content of config.json; ValueError for what the C++ programs would refuse."""
        torch.ops.lattice.parse_model_config(json.dumps(config_dict, default=str))
        return super().from_dict(config_dict, **kwargs)

    def keys_of_model(self):
        """The keys of `[model]`, without what transformers adds."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def model_config(self):
        """The same for lattice.nn; ValueError says what is wrong with a key."""
        return Config(**self.keys_of_model())

    @property
    def layer_types(self):
        return [LAYER_TYPE] * self.layers

    def validate_layer_type(self):
        """transformers would refuse layers that are not its own."""
