"""Checkpoints go from `lattice train` to transformers and back, for every memory."""

import json

import pytest
from cli_program import ok, run, settings
from hf_models import MEMORIES, TEXTS, checkpoint, load, text, written, written_by_cpp
from serve_program import serve

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, set_seed

import lattice.nn
from lattice.hf import LatticeConfig, LatticeForCausalLM


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_loads_and_saves(memory, tmp_path):
    path = checkpoint(memory)
    model, report = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
    assert not any(report.values()), report
    assert isinstance(model, LatticeForCausalLM) and model.dtype == torch.float32
    ids = torch.randint(0, 256, (2, 21), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, _ = lattice.nn.LanguageModel.from_checkpoint(path)(ids)
        assert torch.equal(model.eval()(ids).logits, expected)
    model.save_pretrained(tmp_path)
    ours, theirs = load_file(path / "model.safetensors"), load_file(tmp_path / "model.safetensors")
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    again = json.loads((tmp_path / "config.json").read_text())
    assert json.loads((path / "config.json").read_text()).items() <= (again | {"torch_dtype": again["dtype"]}).items()


@pytest.mark.parametrize("memory", MEMORIES)
def test_greedy_equals_the_runtime(memory):
    model, tokenizer = load(checkpoint(memory))
    for prompt in TEXTS[:2]:
        assert written(model, tokenizer, prompt) == written_by_cpp(checkpoint(memory), prompt)


def saved(model, tokenizer, path):
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.mark.parametrize("tied", [True, False])
def test_every_program_reads_what_is_saved(tied, tmp_path):
    model, tokenizer = load(checkpoint("lattice_dec", f"model.tie_embedding={str(tied).lower()}"))
    path = saved(model, tokenizer, tmp_path / "saved")
    for prompt in TEXTS:
        assert written_by_cpp(path, prompt) == written(model, tokenizer, prompt)
    assert json.loads(ok("eval", "ppl", "--model", path, "--data", text(), "--context", 64, "--max-tokens", 512, "--json"))
    with serve(path) as server:
        status, answer = server.call("/v1/completions", dict(prompt=TEXTS[0], max_tokens=24, temperature=0))
        assert status == 200 and answer["choices"][0]["text"] == written(model, tokenizer, TEXTS[0])
    ok("train", "--init", path, "--data", text(), "--out", tmp_path / "more", "--threads", 1,
       *settings("train.steps=1", "train.seq_len=64", "train.batch_tokens=256", "train.lr=0", "train.min_lr=0"))  # fmt: skip
    more = load_file(tmp_path / "more/checkpoints/latest/model.safetensors")
    assert all(torch.equal(value, more[name]) for name, value in load_file(path / "model.safetensors").items())


def test_a_model_becomes_one_of_the_runtime():
    from lattice.runtime import Sampling

    model, tokenizer = load()
    with torch.no_grad():
        model.blocks[0].mixer.out.weight.mul_(0.5)  # the weights as they are now
    for given in (None, tokenizer):
        quick = model.to_runtime(given, threads=1)
        assert quick.generate(TEXTS[0], 24, Sampling(temperature=0)) == written(model, tokenizer, TEXTS[0])
    fresh = LatticeForCausalLM(LatticeConfig(layers=1, width=32))
    with pytest.raises(ValueError, match="needs the model's tokenizer.*pass tokenizer="):
        fresh.to_runtime()


def test_a_start_from_weights_is_checked(tmp_path):
    data = ("--data", text(), "--out", tmp_path / "x")
    for words, said in ((("--set", "model.width=64"), "takes model and tokenizer"), (("--resume", "auto"), "one of the two")):
        result = run("train", "--init", checkpoint(), *data, *words)
        assert result.returncode != 0 and said in result.stderr


def test_bfloat16(tmp_path):
    model, tokenizer = load(dtype=torch.bfloat16)
    types = {name: parameter.dtype for name, parameter in model.named_parameters()}
    assert types["blocks.0.mixer.qk.weight"] == torch.bfloat16
    for name in ("state0", "gamma.weight", "mu.bias"):
        assert types[f"blocks.0.mixer.{name}"] == torch.float32
    full, _ = load()
    ids = tokenizer(TEXTS[2], return_tensors="pt")
    with torch.no_grad():
        out, exact = model(**ids, use_cache=True), full(**ids).logits
    assert out.logits.dtype == torch.bfloat16 and 0 < (out.logits - exact).abs().max() < 0.1 * exact.abs().max()
    assert {state.dtype for layer in out.past_key_values.layers for state in layer.state.values()} == {torch.float32}
    path = saved(model, tokenizer, tmp_path)
    assert json.loads((path / "config.json").read_text())["dtype"] == "bfloat16"
    assert len(written_by_cpp(path, TEXTS[0])) > 0
    again, _ = load(path)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters()))
    assert written(model.bfloat16(), tokenizer, TEXTS[0], 4)


def test_new_models_start_as_the_trainer_starts_them():
    set_seed(3)
    model = LatticeForCausalLM(LatticeConfig(layers=2, width=32, vocab_size=99))
    seed = model._drawn_seed
    same = lattice.nn.LanguageModel(model.config.model_config(), seed=seed)
    assert all(torch.equal(value, model.get_parameter(name)) for name, value in same.state_dict().items())
    assert model.head.weight is model.embed.weight
    set_seed(3)
    again = LatticeForCausalLM(LatticeConfig(layers=2, width=32, vocab_size=99))
    assert torch.equal(again.embed.weight, model.embed.weight)
    model.resize_token_embeddings(120)
    assert model.config.vocab_size == 120 and model(torch.tensor([[119]])).logits.shape == (1, 1, 120)


def test_config_restates_nothing(tmp_path):
    config = AutoConfig.from_pretrained(checkpoint("gla"))
    assert isinstance(config, LatticeConfig) and config.mixer == "gla"
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (32, 2, 2)
    assert LatticeConfig().keys_of_model() == lattice.nn.Config(vocab_size=257).keys
    config.save_pretrained(tmp_path)
    assert LatticeConfig.from_pretrained(tmp_path).keys_of_model() == config.keys_of_model()


def test_bad_checkpoints_say_what_to_do(tmp_path):
    content = json.loads((checkpoint() / "config.json").read_text())
    for change, said in (({"from_the_future": 1}, 'unknown key "from_the_future".*read it with that version'), ({"slot": 4}, 'did you mean "slots"'),
                         ({"heads": 3}, "does not divide"), ({"mixer": "none"}, "unknown model.mixer")):  # fmt: skip
        (tmp_path / "config.json").write_text(json.dumps(content | change))
        with pytest.raises(ValueError, match=said):
            AutoConfig.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="does not divide"):
        LatticeForCausalLM(LatticeConfig(heads=3))
    with pytest.raises(TypeError, match="float16 is not supported.*use bfloat16"):
        load(dtype=torch.float16)[0](torch.tensor([[1]]))
    with pytest.raises(ValueError, match="save into another directory"):
        load()[0].save_pretrained(checkpoint())
