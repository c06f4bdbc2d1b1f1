"""A LLaMA checkpoint in the layout of the Hugging Face libraries, scored by `lattice eval` and by torch here."""

import json

import pytest
import torch
from cli_program import ok, run
from safetensors.torch import save_file

WIDTH, HEADS, KEY_HEADS, LAYERS, HIDDEN, VOCAB, EPS, THETA = 32, 4, 2, 2, 48, 257, 1e-5, 5000.0


def weights():
    generator = torch.Generator().manual_seed(1)
    shapes = {"model.embed_tokens.weight": (VOCAB, WIDTH), "model.norm.weight": (WIDTH,), "lm_head.weight": (VOCAB, WIDTH)}
    shared = WIDTH // HEADS * KEY_HEADS
    for layer in range(LAYERS):
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in {
            "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,),
            "self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (shared, WIDTH), "self_attn.v_proj": (shared, WIDTH),
            "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (HIDDEN, WIDTH), "mlp.up_proj": (HIDDEN, WIDTH),
            "mlp.down_proj": (WIDTH, HIDDEN)}.items()}
    return {name: torch.randn(shape, generator=generator) * (0.3 if len(shape) == 2 else 1) for name, shape in shapes.items()}


def forward(w, tokens):
    def norm(x, weight):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight

    def rotate(x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[1])[:, None] * THETA ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    x = w["model.embed_tokens.weight"][tokens]
    size = len(tokens)
    for layer in range(LAYERS):
        get = lambda name: w[f"model.layers.{layer}.{name}.weight"]  # noqa: B023
        u = norm(x, get("input_layernorm"))
        q, k, v = ((u @ get(f"self_attn.{n}_proj").T).view(size, -1, WIDTH // HEADS).transpose(0, 1) for n in "qkv")
        k, v = (t.repeat_interleave(HEADS // KEY_HEADS, 0) for t in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + y.transpose(0, 1).reshape(size, WIDTH) @ get("self_attn.o_proj").T
        u = norm(x, get("post_attention_layernorm"))
        x = x + (torch.nn.functional.silu(u @ get("mlp.gate_proj").T) * (u @ get("mlp.up_proj").T)) @ get("mlp.down_proj").T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


CONFIG = {"model_type": "llama", "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
          "num_hidden_layers": LAYERS, "intermediate_size": HIDDEN, "vocab_size": VOCAB, "rms_norm_eps": EPS,
          "rope_theta": THETA, "tie_word_embeddings": False, "hidden_act": "silu", "rope_scaling": None}


@pytest.fixture(params=["one file", "two files"])
def checkpoint(tmp_path, request):
    w = weights()
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    if request.param == "one file":
        save_file(w, tmp_path / "model.safetensors")
    else:
        names = sorted(w)
        parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
        for file, part in parts.items():
            save_file({name: w[name] for name in part}, tmp_path / file)
        index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "piqa_val.jsonl").write_text(json.dumps({"goal": "Sit", "sol1": "on it", "sol2": "under", "label": 0}) + "\n")
    return tmp_path, w


def test_log_likelihoods_are_those_of_torch(checkpoint):
    directory, w = checkpoint
    ok("eval", "tasks", "--model", directory, "--tokenizer", "bytes", "--tasks", "piqa", "--tasks-dir", directory,
       "--dump", directory / "dump")
    line = json.loads((directory / "dump").read_text())
    for continuation, likelihood in zip(line["continuations"], line["loglikelihoods"]):
        context, target = line["context"].encode(), continuation.encode()
        logits = forward(w, torch.tensor(list(context + target)))
        expected = torch.log_softmax(logits, -1)[len(context) - 1:-1].gather(1, torch.tensor(list(target))[:, None]).sum()
        assert likelihood == pytest.approx(expected.item(), abs=1e-3)


def test_what_cannot_be_computed_is_refused(checkpoint):
    directory, _ = checkpoint
    (directory / "config.json").write_text(json.dumps(CONFIG | {"rope_scaling": {"type": "linear"}}))
    command = ["eval", "tasks", "--model", directory, "--tokenizer", "bytes", "--tasks", "piqa", "--tasks-dir", directory]
    result = run(*command)
    assert result.returncode == 1 and "rope_scaling" in result.stderr
    (directory / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 3}))
    result = run(*command)
    assert result.returncode == 1 and "model.layers.2." in result.stderr and "missing" in result.stderr
