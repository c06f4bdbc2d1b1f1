"""`lattice generate`: determinism, sampling options, whole characters, bad models."""

import json
import re
import shutil

import pytest
from cli_program import ok, run, train, write_text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("generate")
    train(write_text(path / "text.txt"), path / "run", "train.steps=30")
    return path / "run"


def generate(model, *args, **options):
    return ok("generate", "--model", model, *args, **options)


def test_a_seed_gives_the_same_text(model):
    one = generate(model, "--prompt", "the memory", "--tokens", 60, "--seed", 1)
    assert one == generate(model, "--prompt", "the memory", "--tokens", 60, "--seed", 1)
    assert one != generate(model, "--prompt", "the memory", "--tokens", 60, "--seed", 2)
    assert one == generate(model / "checkpoints/latest", "--prompt", "the memory", "--tokens", 60, "--seed", 1)
    assert len(one) > 30


def test_the_prompt_and_the_speed_are_shown_beside_the_text(model):
    result = run("generate", "--model", model, "--prompt", "the memory", "--tokens", 20, "--seed", 1)
    assert "the memory" not in result.stdout.splitlines()[0][:10]
    assert re.fullmatch(r"the memory\n\(10 tokens read in .*, 20 made, [\d.]+( \w)? tokens/s\)\n", result.stderr)
    assert generate(model, "--prompt", "the memory", "--tokens", 20, "--seed", 1) == result.stdout


def test_json_has_the_text_and_its_figures(model):
    args = ("--prompt", "the memory", "--tokens", 20, "--seed", 1)
    result = run("generate", "--model", model, *args, "--json")
    figures = json.loads(result.stdout)
    assert figures["text"] + "\n" == generate(model, *args) and result.stderr == ""
    assert figures["prompt_tokens"] == 10 and figures["tokens"] == 20 and figures["seconds"] > 0 and figures["prompt_seconds"] > 0


def test_the_prompt_may_come_from_standard_input(model):
    assert generate(model, "--prompt", "-", "--seed", 1, stdin="slots") == generate(model, "--prompt", "slots", "--seed", 1)


def test_temperature_zero_and_top_k_one_are_the_most_likely(model):
    greedy = generate(model, "--prompt", "a", "--temperature", 0, "--tokens", 40)
    assert greedy == generate(model, "--prompt", "a", "--top-k", 1, "--tokens", 40, "--seed", 9)
    assert greedy == generate(model, "--prompt", "a", "--top-p", 0, "--tokens", 40, "--seed", 9)


def test_a_prompt_in_blocks_is_a_prompt(model):
    """Prompts around the block of 512 tokens, and a prompt longer than anything trained on."""
    text = "the memory holds a fixed number of slots " * 250
    for length in (511, 512, 513, len(text)):
        out = generate(model, "--prompt", "-", "--temperature", 0, "--tokens", 20, stdin=text[:length])
        assert len(out) > 1


def test_without_a_prompt_or_tokens(model):
    assert len(generate(model, "--tokens", 30)) > 1
    assert generate(model, "--prompt", "x", "--tokens", 0) == "\n"


def test_only_whole_characters_come_out(model, tmp_path):
    train(write_text(tmp_path / "t.txt"), tmp_path / "run", "train.steps=1")
    command = ["generate", "--model", tmp_path / "run", "--prompt", "\u00e4", "--temperature", "5", "--tokens", "300"]
    assert "\ufffd" in ok(*command), "an untrained model writes bytes that are no characters; they are replaced"


def test_bad_models_are_named(model, tmp_path):
    for path, part in [(tmp_path / "none", "there is no"), (tmp_path, "neither a checkpoint"), (model / "config.toml", "neither a checkpoint")]:
        result = run("generate", "--model", path, "--prompt", "x")
        assert result.returncode == 1 and part in result.stderr and result.stdout == ""
    copy = tmp_path / "copy"
    shutil.copytree(model / "checkpoints" / "latest", copy)
    (copy / "model.safetensors").write_bytes(b"this is no checkpoint")
    result = run("generate", "--model", copy, "--prompt", "x")
    assert result.returncode == 1 and "model.safetensors" in result.stderr
    weights = bytearray((model / "checkpoints/latest/model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    for command in [["generate", "--prompt", "x"], ["inspect"], ["convert", "--to", "int8", "--out", tmp_path / "c"]]:
        result = run(command[0], "--model", copy, *command[1:])
        assert result.returncode == 1 and "checksum" in result.stderr, command
    (copy / "trainer.json").unlink()
    assert run("generate", "--model", copy, "--prompt", "x", "--tokens", 1).returncode == 0, "nothing to compare with"
    config = json.loads((copy / "config.json").read_text())
    shutil.copy(model / "checkpoints/latest/model.safetensors", copy)
    for change, part in [({"mixer": "mlstm"}, "mlstm"), ({"model_type": "gpt2"}, "gpt2"),
                         ({"model_type": "llama"}, "num_hidden_layers"), ({"width": 64}, "shape")]:
        (copy / "config.json").write_text(json.dumps({**config, **change}))
        result = run("generate", "--model", copy, "--prompt", "x")
        assert result.returncode == 1 and part in result.stderr


@pytest.mark.parametrize("args", [["--temperature", "-1"], ["--temperature", "nan"], ["--top-p", "2"], ["--top-p", "nan"],
                                  ["--tokens", "-5"], ["--top-k", "x"]])
def test_wrong_options(model, args):
    result = run("generate", "--model", model, *args)
    assert result.returncode == 2 and args[0] in result.stderr
