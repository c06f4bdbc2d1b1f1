"""`lattice inspect`: the parameter counts that the paper implies, states and costs."""

import json

import pytest
from cli_program import ROOT, ok, run, settings

# Parameters without the embedding: docs/recurrence.md has the architecture that gives them.
PAPER = {
    ("110m", "transformer"): 84_953_856, ("340m", "transformer"): 302_433_280,
    ("110m", "lattice_dec"): 85_931_040, ("340m", "lattice_dec"): 305_235_712,
    ("110m", "lattice_sim"): 85_820_304, ("340m", "lattice_sim"): 304_842_112,
    ("110m", "deltanet"): 85_820_304, ("340m", "deltanet"): 304_842_112,
    ("110m", "gated_deltanet"): 85_931_184, ("340m", "gated_deltanet"): 305_236_096,
    ("110m", "gla"): 86_013_696, ("340m", "gla"): 305_259_520,
    ("110m", "mamba2"): 85_866_672, ("340m", "mamba2"): 304_965_760,
}


def inspect(preset, *assignments):
    return json.loads(ok("inspect", "--config", ROOT / "configs" / f"{preset}.toml", "--json", *settings(*assignments)))


@pytest.mark.parametrize("preset,mixer", PAPER)
def test_parameter_counts(preset, mixer):
    counts = inspect(preset, f"model.mixer={mixer}")["parameters"]
    assert counts["non_embedding"] == PAPER[preset, mixer]
    assert counts["total"] == counts["embedding"] + counts["non_embedding"]
    assert counts["embedding"] == 32_000 * {"110m": 768, "340m": 1024}[preset]


def test_only_the_transformers_state_grows():
    config = ["inspect", "--config", ROOT / "configs/110m.toml", "--json"]
    for mixer, grows in (("lattice_dec", False), ("transformer", True)):
        short, long = (json.loads(ok(*config, "--set", f"model.mixer={mixer}", "--context", length))
                       for length in (1024, 4096))
        assert (short["state_bytes"] < long["state_bytes"]) == grows
        assert (short["flops_per_token"] < long["flops_per_token"]) == grows
    assert short["state_bytes"] == 12 * 2 * 1024 * 768 * 4


def test_training_costs_six_operations_per_parameter():
    report = inspect("110m", "model.mixer=lattice_dec")
    assert report["training_flops_per_token"] == 3 * report["flops_per_token"]
    assert report["flops_per_token"] >= 2 * report["parameters"]["total"]


def test_the_table_names_every_part():
    out = ok("inspect", "--config", ROOT / "configs/tiny.toml")
    for word in ("lattice_dec", "parameters", "without embedding", "state of a sequence", "whatever its length"):
        assert word in out
    assert f"{inspect('tiny')['parameters']['total']:,}" in out


@pytest.mark.parametrize("args,parts", [
    ([], ["--config FILE or --model RUN"]),
    (["--config", "none.toml"], ["none.toml"]),
    (["--config", ROOT / "configs/tiny.toml", "--set", "model.widht=3"], ["widht", "width"]),
    (["--config", ROOT / "configs/tiny.toml", "--context", "0"], ["--context"]),
])
def test_wrong_use(args, parts):
    result = run("inspect", *args)
    assert result.returncode == 2 and result.stdout == ""
    for part in parts:
        assert part in result.stderr
