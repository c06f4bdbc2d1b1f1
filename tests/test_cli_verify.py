"""`lattice verify`: the runtime against the torch model, on a tiny model trained for a few steps."""

import json

import pytest
from cli_program import ROOT, ok, run, train, write_text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("verify")
    train(write_text(path / "text.txt"), path / "run", "train.steps=30")
    return path


ARGS = ["--kib", 2, "--tokens", 100, "--greedy", 20, "--threads", 1]


def test_certificate(model):
    got = json.loads(ok("verify", model / "run", "--data", model / "text.txt", *ARGS, "--json"))
    assert got["ok"] and got["tokens"] == 2048 and got["compared_tokens"] == 100
    exact, bf16, int8, int4 = got["formats"]
    assert [each["format"] for each in got["formats"]] == ["float32", "bf16", "int8", "int4"]
    assert all(each["same_bits_every_way"] for each in got["formats"])
    ways = {"prefill", "steps", "loaded", "batched"}
    assert set(exact["difference_to_torch"]) == ways and all(0 < exact["difference_to_torch"][way] < 1e-5 for way in ways)
    # Rounded weights must show, or the comparison looks at something else.
    assert exact["difference_to_torch"]["prefill"] * 10 < bf16["difference_to_torch"]["prefill"] < 0.05
    assert exact["difference_to_torch"]["prefill"] * 10 < int8["difference_to_torch"]["prefill"] < 0.1
    assert int8["difference_to_torch"]["prefill"] < int4["difference_to_torch"]["prefill"] < 0.5
    assert abs(exact["perplexity_cost_percent"]) < 1e-3 and exact["first_greedy_difference"] is None
    assert abs(bf16["perplexity_cost_percent"]) < 0.5 and abs(int8["perplexity_cost_percent"]) < 2
    assert 1 < got["torch_perplexity"] < 257


def test_text_and_the_novel_by_default(model):
    text = ok("verify", model / "run", *ARGS, cwd=ROOT)
    assert "verified: float32" in text and "the same bits every way" in text and "% above torch's" in text


@pytest.mark.parametrize("to", [["int8"], ["int4", "--no-calibration"]])
def test_integer_weights_have_no_reference(model, tmp_path, to):
    ok("convert", "--model", model / "run", "--out", tmp_path / "small", "--to", *to)
    result = run("verify", tmp_path / "small", *ARGS)
    assert result.returncode == 1 and to[0] in result.stderr and "float32" in result.stderr


def test_wrong_use(model, tmp_path):
    (tmp_path / "short.txt").write_text("too short")
    result = run("verify", model / "run", "--data", tmp_path / "short.txt")
    assert result.returncode == 2 and "9 tokens" in result.stderr and "--data" in result.stderr
    assert run("verify").returncode == 2
    result = run("verify", tmp_path / "none")
    assert result.returncode == 1 and "there is no" in result.stderr


def test_chunked_models_are_refused(model, tmp_path):
    train(model / "text.txt", tmp_path / "run", "model.method=linear2", "model.chunk=16", "model.sweeps=2",
          "train.steps=2")
    for command in (["verify", tmp_path / "run"], ["generate", "--model", tmp_path / "run", "--prompt", "the"]):
        result = run(*command)
        assert result.returncode == 1 and "exact recurrence only" in result.stderr and "sweeps = 2" in result.stderr
