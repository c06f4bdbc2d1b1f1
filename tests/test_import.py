"""`lattice import`: what transformers computes, our programs compute, from safetensors and from GGUF; and back."""

import json
import subprocess

import numpy as np
import pytest
import torch
from cli_program import ROOT, ok, run
from gguf_file import random_blocks, write_gguf

pytest.importorskip("transformers")

import transformers  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

from lattice.hf import LatticeForCausalLM  # noqa: E402
from lattice.runtime import Model  # noqa: E402

VOCAB = json.loads((ROOT / "tests/data/bpe/vocab.json").read_text())
MERGES = [tuple(line.split()) for line in (ROOT / "tests/data/bpe/merges.txt").read_text().splitlines() if line[0] != "#"]
CHAT = "{% for message in messages %}{{ message['content'] }}<|endoftext|>{% endfor %}"
SIZES = dict(vocab_size=420, hidden_size=256, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, rms_norm_eps=1e-5, max_position_embeddings=2048)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
LINEAR = dict(rope_type="linear", rope_theta=500.0, factor=2.0)
TOKENS = [i * i * 31 % 417 for i in range(1000)]


def a_model(rope, tied=True, **sizes):
    torch.manual_seed(2)
    config = transformers.LlamaConfig(**SIZES | sizes, tie_word_embeddings=tied, rope_parameters=dict(rope), eos_token_id=0)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.06 if parameter.dim() == 2 else 1 + 0.2 * torch.randn_like(parameter))
    return model


def a_tokenizer():
    tokenizer = Tokenizer(models.BPE(VOCAB, MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", chat_template=CHAT)


def save(model, folder, **options):
    model.save_pretrained(folder, **options)
    a_tokenizer().save_pretrained(folder)
    (folder / "LICENSE").write_text("As you like it.\n")
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
    return folder


@torch.no_grad()
def logits_of(model):
    return model(torch.tensor([TOKENS])).logits[0].numpy()


def logits_here(directory):
    """All logits of the C++ runtime: the second half token by token, the first in blocks of 100."""
    session, rows = Model.load(directory, threads=2).session(), {}
    for at in range(0, 500, 100):
        session.append(TOKENS[at:at + 100])
        rows[at + 99] = np.frombuffer(session.logits(), np.float32)
    for at in range(500, 1000):
        session.append(TOKENS[at:at + 1])
        rows[at] = np.frombuffer(session.logits(), np.float32)
    return rows


def assert_equal_logits(directory, model):
    expected = logits_of(model)
    assert expected.std() > 0.3
    for at, row in logits_here(directory).items():
        np.testing.assert_allclose(row, expected[at], rtol=0, atol=1e-4, err_msg=f"token {at}")


@pytest.mark.parametrize("case", ["llama3 tied", "linear untied in shards", "bfloat16 in the old layout"])
def test_logits_from_safetensors_are_those_of_transformers(tmp_path, case):
    model = a_model(LINEAR if "linear" in case else LLAMA3, tied="tied" in case.split())
    source = save(model.bfloat16() if "bfloat16" in case else model, tmp_path / "source",
                  **({"max_shard_size": "900KB"} if "shards" in case else {}))
    # bfloat16() has rounded the rates of the rotary positions, too.
    model = transformers.LlamaForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    assert ("shards" in case) == (source / "model.safetensors.index.json").exists()
    if "old" in case:  # as versions of transformers before 5 wrote it
        config = json.loads((source / "config.json").read_text())
        config["rope_scaling"] = config.pop("rope_parameters")
        config["rope_theta"] = config["rope_scaling"].pop("rope_theta")
        (source / "config.json").write_text(json.dumps(config))
    out = ok("import", source, "--out", tmp_path / "model")
    assert "licence   apache-2.0, LICENSE" in out and "2048 tokens" in out
    assert_equal_logits(tmp_path / "model", model)
    # The same weights run in place, and as a torch module.
    ours = LatticeForCausalLM.from_pretrained(tmp_path / "model").eval()
    np.testing.assert_allclose(logits_of(ours), logits_of(model), rtol=0, atol=1e-4)


def gguf_of(model_config, path, kinds, draw, **metadata):
    """A GGUF file with tensors of these types in turn, and the state dict of the same model for transformers."""
    c = model_config
    D, H, G = c.hidden_size // c.num_attention_heads, c.num_attention_heads, c.num_key_value_heads
    shapes = {"token_embd": (c.vocab_size, c.hidden_size), "output_norm": (c.hidden_size,)}
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    for i in range(c.num_hidden_layers):
        for theirs, name, shape in (("input_layernorm", "attn_norm", (c.hidden_size,)), ("self_attn.q_proj", "attn_q", (H * D, c.hidden_size)),
                                    ("self_attn.k_proj", "attn_k", (G * D, c.hidden_size)), ("self_attn.v_proj", "attn_v", (G * D, c.hidden_size)),
                                    ("self_attn.o_proj", "attn_output", (c.hidden_size, H * D)), ("post_attention_layernorm", "ffn_norm", (c.hidden_size,)),
                                    ("mlp.gate_proj", "ffn_gate", (c.intermediate_size, c.hidden_size)),
                                    ("mlp.up_proj", "ffn_up", (c.intermediate_size, c.hidden_size)),
                                    ("mlp.down_proj", "ffn_down", (c.hidden_size, c.intermediate_size))):
            shapes[f"blk.{i}.{name}"], names[f"blk.{i}.{name}"] = shape, f"model.layers.{i}.{theirs}"
    tensors, state, turn = {}, {}, 0
    for name, shape in shapes.items():
        if len(shape) == 1:
            kind, (raw, values) = "F32", random_blocks("F32", shape, 1.0, draw)
        else:
            kind, turn = kinds[turn % len(kinds)], turn + 1
            raw, values = random_blocks(kind, shape, 0.06, draw)
        tensors[name + ".weight"] = (kind, shape, raw)
        if name.endswith(("attn_q", "attn_k")):  # neighbours turn together there, halves of a head here
            values = values.reshape(-1, D // 2, 2, c.hidden_size).transpose(0, 2, 1, 3).reshape(shape)
        state[names[name] + ".weight"] = torch.from_numpy(values.copy())
    tokens = sorted(VOCAB, key=VOCAB.get)
    keys = {"general.architecture": "llama", "general.name": "a test", "general.license": "apache-2.0",
            "llama.context_length": 2048, "llama.block_count": c.num_hidden_layers, "llama.embedding_length": c.hidden_size,
            "llama.feed_forward_length": c.intermediate_size, "llama.attention.head_count": H,
            "llama.attention.head_count_kv": G, "llama.attention.layer_norm_rms_epsilon": c.rms_norm_eps,
            "llama.rope.freq_base": c.rope_parameters["rope_theta"], "llama.rope.dimension_count": D,
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [3 if t == "<|endoftext|>" else 1 for t in tokens],
            "tokenizer.ggml.merges": [" ".join(pair) for pair in MERGES], "tokenizer.ggml.eos_token_id": VOCAB["<|endoftext|>"],
            "tokenizer.chat_template": CHAT} | metadata
    return {k: v for k, v in keys.items() if v is not None}, tensors, state


QUANTISED = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "F16", "BF16", "F32"]


@pytest.fixture(scope="module")
def from_gguf(tmp_path_factory):
    """A file with every type, the model of transformers that it is, and what was imported."""
    folder = tmp_path_factory.mktemp("gguf")
    model = a_model(LLAMA3)
    keys, tensors, state = gguf_of(model.config, folder, QUANTISED, np.random.default_rng(5))
    plain = 1 / LLAMA3["rope_theta"] ** (np.arange(0, 64, 2) / 64)
    factors = (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)
    tensors["rope_freqs.weight"] = ("F32", (32,), factors.tobytes())
    write_gguf(folder / "model.gguf", keys, tensors)
    model.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]})
    out = ok("import", folder / "model.gguf", "--out", folder / "model")
    assert "licence   apache-2.0" in out
    return folder, model


def test_logits_from_gguf_are_those_of_transformers(from_gguf):
    folder, model = from_gguf
    assert_equal_logits(folder / "model", model)


def test_greedy_text_is_that_of_transformers(from_gguf):
    folder, model = from_gguf
    tokenizer = a_tokenizer()
    prompt = "the memory holds 12 slots"
    ids = tokenizer(prompt, return_tensors="pt")
    made = model.generate(**ids, max_new_tokens=60, do_sample=False, pad_token_id=0)[0, ids.input_ids.shape[1]:]
    text = ok("generate", "--model", folder / "model", "--prompt", prompt, "--tokens", 60, "--temperature", 0)
    assert text == tokenizer.decode(made, skip_special_tokens=True, clean_up_tokenization_spaces=False) + "\n"


def test_what_is_imported_is_an_ordinary_model(from_gguf, tmp_path):
    folder, _ = from_gguf
    for to in ("int8", "bf16"):
        ok("convert", "--model", folder / "model", "--to", to, "--out", tmp_path / to)
        assert (tmp_path / to / "lattice_import.json").exists()
        assert json.loads((tmp_path / to / "tokenizer_config.json").read_text())["chat_template"] == CHAT
        shown = ok("inspect", "--model", tmp_path / to)
        assert "licence   apache-2.0" in shown and "transformer: 2 layers" in shown
    (tmp_path / "text.txt").write_text("the memory holds a number of slots\n" * 50)
    loss = {name: json.loads(ok("eval", "ppl", "--model", path, "--data", tmp_path / "text.txt", "--json"))
            for name, path in (("float32", folder / "model"), ("int8", tmp_path / "int8"))}
    assert loss["int8"] != loss["float32"]


def test_chat_templates_are_those_of_the_file(from_gguf):
    folder, _ = from_gguf
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "holds 12"}], tokenize=True, return_dict=False)
    here = ok("tokenizer", "encode", "--tokenizer", folder / "model", "--special", "--text", "holds 12<|endoftext|>")
    assert [int(word) for word in here.split()] == list(ids) and ids[-1] == VOCAB["<|endoftext|>"]


@pytest.mark.parametrize("from_bf16", [False, True])
def test_exports_are_models_of_transformers(from_gguf, tmp_path, from_bf16):
    folder, model = from_gguf
    source = folder / "model"
    if from_bf16:
        ok("convert", "--model", source, "--to", "bf16", "--out", tmp_path / "bf16")
        source = tmp_path / "bf16"
    ok("convert", "--model", source, "--to", "hf", "--out", tmp_path / "hf")
    back = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf", dtype=torch.float32).eval()
    assert isinstance(back, transformers.LlamaForCausalLM)
    if from_bf16:
        assert_equal_logits_loosely(back, model)
    else:
        np.testing.assert_allclose(logits_of(back), logits_of(model), rtol=0, atol=1e-4)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "hf").chat_template == CHAT


def assert_equal_logits_loosely(back, model):
    assert np.abs(logits_of(back) - logits_of(model)).mean() < 0.05 * logits_of(model).std()


def refused(source, out):
    result = run("import", source, "--out", out)
    assert result.returncode == 1 and not out.exists() and not list(out.parent.glob(out.name + ".tmp*"))
    return result.stderr


def test_what_is_not_known_is_named_and_nothing_is_written(tmp_path):
    source, out = save(a_model(LLAMA3, num_hidden_layers=1), tmp_path / "source"), tmp_path / "out"
    config = json.loads((source / "config.json").read_text())

    def with_config(**keys):
        (source / "config.json").write_text(json.dumps(config | keys))
        return refused(source, out)

    assert '"qwen3"' in with_config(model_type="qwen3")
    assert '"yarn"' in with_config(rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0})
    assert "layers.1" in with_config(num_hidden_layers=2)
    assert "mlp.gate_proj" in with_config(intermediate_size=128)
    (source / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    tokenizer["model"]["type"] = "WordPiece"
    (source / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert '"WordPiece"' in refused(source, out)
    assert "no file or directory" in refused(tmp_path / "none", out)
    (tmp_path / "empty").mkdir()
    assert "no model" in refused(tmp_path / "empty", out)
    (tmp_path / "text.gguf").write_text("not a model")
    assert "not a GGUF file" in refused(tmp_path / "text.gguf", out)
    out.mkdir()
    (out / "mine").write_text("x")
    result = run("import", source, "--out", out)
    assert result.returncode == 2 and "exists already" in result.stderr and (out / "mine").read_text() == "x"


def test_lattice_run_imports_as_well(tmp_path):
    source = save(a_model(LINEAR, num_hidden_layers=1), tmp_path / "source")
    program = ROOT / "build/release/bin/lattice-run"
    subprocess.run([program, "import", source, "--out", tmp_path / "m", "--to", "bf16"], check=True, capture_output=True)
    assert json.loads((tmp_path / "m/config.json").read_text())["torch_dtype"] == "bfloat16"
