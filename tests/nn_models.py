"""Small models of every kind, for the test_nn_* modules."""

import torch

import lattice
from lattice.nn import Config, LanguageModel

MEMORIES = [memory["name"] for memory in lattice.memories()]
RECURRENT = [memory["name"] for memory in lattice.memories() if not memory["attention"]]
SMALL = dict(vocab_size=61, layers=2, width=32, heads=2)
# Keys that change what is computed.
OPTIONS = {
    "sizes": dict(slots=8, hidden=48, conv_width=3),
    "untied": dict(tie_embedding=False, gamma_bias=1.0),
    "silu": dict(conv_activation="silu", qk_norm="scale", v_norm="l2", mixer="mamba2"),
    "rms values": dict(v_norm="rms", qk_norm="rms"),
    "shrinkage": dict(lam=0.02, normalize="none"),
    "rotary": dict(rope_period=16, rope_type="linear", rope_factor=2.0),
    "grouped": dict(mixer="transformer", heads=4, kv_heads=2, rope_type="llama3", rope_factor=4.0, rope_context=64, rope_theta=1000.0),
    "narrow": dict(conv_width=1, mixer="gated_deltanet"),
    "layers that differ": dict(mixers="lattice_dec, transformer", slots=8),
    "window": dict(mixer="lattice_dec+window", block="attention", window=7, sinks=2, kv_heads=1),
    "window alone": dict(mixer="transformer+window", block="attention", window=5, sinks=1),
    "gates beside a window": dict(mixers="gla+window, transformer", block="attention", window=6, sinks=0, output_gate="sigmoid"),
    "block of attention": dict(mixer="mlstm", block="attention", heads=4, kv_heads=2),
}


def small_model(mixer="lattice_dec", seed=3, **keys):
    """Away from its initial values, where half of the parameters are constants."""
    model = LanguageModel(Config(**dict(SMALL, mixer=mixer) | keys), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name or parameter.dim() == 1:
                parameter.add_(0.3 * noise)
            elif "state0" not in name and "conv" not in name:
                parameter.mul_(4)
    return model


def tokens_of(*shape, seed=1):
    return torch.randint(SMALL["vocab_size"], shape, generator=torch.Generator().manual_seed(seed))
