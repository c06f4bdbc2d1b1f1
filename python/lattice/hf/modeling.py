"""The language model of lattice.nn for transformers: generate(), Trainer, PEFT and what builds on them."""

import json
import tempfile
from pathlib import Path

import torch
from torch import nn
from transformers import AutoTokenizer, GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import CausalLMOutputWithPast

from lattice.hf.cache import LatticeCache, LatticeCacheLayer
from lattice.hf.configuration import LatticeConfig
from lattice.nn import Block, LanguageModel
from lattice.nn.layers import wide

# What generate() offers to other models, and why not to these.
_REFUSED = {
    "assistant_model": "assisted decoding takes back tokens, which a recurrent memory cannot",
    "prompt_lookup_num_tokens": "prompt lookup takes back tokens, which a recurrent memory cannot",
    "assistant_early_exit": "early exit takes back tokens, which a recurrent memory cannot",
}
_REFUSED_CACHES = {
    "static": "a static cache makes room for keys and values of a number of tokens, and the state of a recurrent memory "
    "does not grow; leave cache_implementation out",
    "quantized": "a quantised cache rounds keys and values, and rounding the state of a recurrent memory adds up over "
    "tokens; leave cache_implementation out",
}


class LatticeBlock(GradientCheckpointingLayer, Block):
    """A block that transformers can tell to compute itself again in the backward pass."""


class LatticeForCausalLM(PreTrainedModel, GenerationMixin):
    """A model of `./lattice train`, for every memory.

    Names of parameters are those of the checkpoint. input_ids [B,T]; attention_mask [B,T], or [B,P+T] with the P tokens
    that the cache has read, 0 for padding before or after a text: what stands in padding changes no bit of anything else.
    past_key_values is a LatticeCache. Weights may be float32 or bfloat16; memories are float32.
    """

    config_class = LatticeConfig
    config: LatticeConfig
    _input_embed_layer = "embed"
    _no_split_modules = ["LatticeBlock"]
    _is_stateful = True
    _can_compile_fullgraph = True
    supports_gradient_checkpointing = True
    _tied_weights_keys = {"head.weight": "embed.weight"}

    def __init__(self, config: LatticeConfig):
        super().__init__(config)
        described = config.model_config()
        # Gates decide what is forgotten, and memories start at a parameter: these stay float32 in a model of bfloat16.
        mixers = [t for i in range(config.layers) for t in described.tensors(f"blocks.{i}.mixer.")]
        self._keep_in_fp32_modules_strict = sorted(
            {"mixer." + t.name.split(".")[0] for t in mixers if t.layer in ("gate", "none")})
        model = LanguageModel(described, init=False)
        self.embed, self.final_norm = model.embed, model.final_norm
        self.blocks = nn.ModuleList(LatticeBlock(described, i, init=False) for i in range(config.layers))
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.gradient_checkpointing = False
        self.post_init()

    def get_output_embeddings(self):
        return self.head

    def set_output_embeddings(self, new_embeddings):
        self.head = new_embeddings

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        inputs_embeds=None,
        past_key_values=None,
        labels=None,
        use_cache=None,
        logits_to_keep=0,
        output_hidden_states=False,
        cu_seq_lens_q=None,
        **kwargs,
    ):
        """Logits [B,T,vocabulary], those of the last `logits_to_keep` tokens if that is not 0; with labels [B,T] also the
        mean loss of predicting each from the tokens before it, -100 not counted. cu_seq_lens_q, as DataCollatorWithFlattening
        makes it, cuts a batch of one row into texts that do not see each other.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give exactly one of input_ids and inputs_embeds")
        x = self.embed(input_ids) if inputs_embeds is None else inputs_embeds
        cache = self._cache(past_key_values, use_cache, x.shape[0])
        mask = _mask_of(attention_mask, x)
        x, every = wide(x), []
        for i, block in enumerate(self.blocks):
            every.append(x)
            x = _run(block, x, cache, i, mask=mask, cu_seqlens=cu_seq_lens_q)
        keep = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        hidden = self.final_norm(x if output_hidden_states else x[:, keep])
        logits = self.head((hidden[:, keep] if output_hidden_states else hidden).to(self.head.weight.dtype))
        return CausalLMOutputWithPast(
            loss=None if labels is None else self.loss_function(logits, labels, self.config.vocab_size, **kwargs),
            logits=logits,
            past_key_values=cache,
            hidden_states=(*every, hidden) if output_hidden_states else None,
        )

    def _cache(self, given, use_cache, batch):
        """The cache to read and fill; None when there is nothing to remember."""
        if given is None:
            if use_cache is None:
                use_cache = self.config.use_cache and not self.training
            if not use_cache or (self.gradient_checkpointing and self.training):
                return None
            given = LatticeCache(self.config)
        layers = getattr(given, "layers", None) or []
        if len(layers) != len(self.blocks) or not all(isinstance(layer, LatticeCacheLayer) for layer in layers):
            raise ValueError(
                f"past_key_values is a {type(given).__name__} of {len(layers)} layers, not a cache of this model with "
                f"{len(self.blocks)}; pass what an earlier call returned, or LatticeCache(model.config)"
            )
        for layer in layers:
            layer.require(self._fingerprint, batch)
        return given

    @property
    def _fingerprint(self):
        """Equal for models that can read each other's caches."""
        return tuple(self.config.keys_of_model().items())

    def generate(self, inputs=None, generation_config=None, **kwargs):
        """GenerationMixin.generate, where a recurrent memory can do what is asked; ValueError says why where it cannot."""
        chosen = generation_config or self.generation_config

        def asked(name):
            return kwargs.get(name, getattr(chosen, name, None))

        for name, reason in _REFUSED.items():
            if asked(name) is not None:
                raise ValueError(f"{name}: {reason}; leave it out")
        implementation = asked("cache_implementation") or ""
        for name, reason in _REFUSED_CACHES.items():
            if name in implementation:
                raise ValueError(f"cache_implementation={implementation!r}: {reason}")
        if implementation == "offloaded" and kwargs.get("past_key_values") is None:
            kwargs.update(cache_implementation=None, past_key_values=LatticeCache(self.config, offloading=True))
        return super().generate(inputs, generation_config=generation_config, **kwargs)

    def save_pretrained(self, save_directory, *args, **kwargs):
        """PreTrainedModel.save_pretrained; with the tokenizer saved beside it, every program of the project reads the result."""
        if (Path(save_directory) / "trainer.json").exists():
            raise ValueError(f"{save_directory} is a checkpoint that `./lattice train` goes on from, with checksums of its "
                             "files; save into another directory")  # fmt: skip
        return super().save_pretrained(save_directory, *args, **kwargs)

    def to_runtime(self, tokenizer=None, *, threads=0):
        """A copy of the model in lattice.runtime, which writes a small model's tokens tens of times faster than generate().

        tokenizer: the model's; None is that of the directory the model was loaded from. `threads` 0: one per core.
        """
        from lattice.runtime import Model

        if tokenizer is None and not (Path(self.name_or_path) / "lattice_tokenizer.json").exists():
            raise ValueError("to_runtime needs the model's tokenizer: the model was not loaded from a directory that has one; "
                             "pass tokenizer=")  # fmt: skip
        with tempfile.TemporaryDirectory() as directory:
            self.save_pretrained(directory)
            (tokenizer or AutoTokenizer.from_pretrained(self.name_or_path)).save_pretrained(directory)
            return Model.load(directory, threads=threads)

    @torch.no_grad()
    def _init_weights(self, module):
        """The initial values that the C++ trainer gives to new models."""
        names = {parameter: name for name, parameter in self.named_parameters()}
        keys = json.dumps(self.config.keys_of_model())
        for parameter in module.parameters(recurse=False):
            if getattr(parameter, "_is_hf_initialized", False):
                continue
            value = torch.ops.lattice.initial_tensors(keys, self._seed(), names.get(parameter, "no such tensor"))
            if len(value) != 1 or value[0].shape != parameter.shape:  # an adapter's, or the rows of a larger vocabulary
                return super()._init_weights(module)
            init.copy_(parameter, value[0])

    def _seed(self):
        """Drawn from torch's generator once for a model."""
        if not hasattr(self, "_drawn_seed"):
            self._drawn_seed = int(torch.randint(2**62, (), device="cpu"))
        return self._drawn_seed


def _run(block, x, cache, index, **where):
    """One block, from and into its layer of the cache."""
    if cache is None:
        return block(x, None, **where)[0]
    layer = cache.layers[index]
    waits = getattr(cache, "states_wait_on_cpu", False)
    if waits:
        layer.prefetch()
    x, state = block(x, layer.state, **where)
    layer.update(state, x.shape[1])
    if waits:
        layer.offload()
    return x


def _mask_of(attention_mask, x):
    """The mask of these tokens, bool [B,T], without that of tokens in the cache; None when all of them count."""
    if attention_mask is None:
        return None
    B, T = x.shape[:2]
    if attention_mask.dim() != 2 or attention_mask.shape[0] != B or attention_mask.shape[1] < T:
        raise ValueError(f"attention_mask must be [B,T] = {[B, T]}, or have more columns for tokens in the cache, got "
                         f"{list(attention_mask.shape)}")  # fmt: skip
    mask = attention_mask[:, attention_mask.shape[1] - T :].bool()
    return None if not torch.compiler.is_compiling() and bool(mask.all()) else mask
