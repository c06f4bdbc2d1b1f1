"""`lattice-run` and `lattice convert`: the program without torch, and checkpoints with smaller weights."""

import json
import shutil
import subprocess
import sys

import pytest
from cli_program import ROOT, ok, run, train, write_text

RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    train(write_text(path / "text.txt"), path / "run", "train.steps=30")
    return path / "run"


def runner(*args):
    return subprocess.run([RUNNER, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=ROOT)


def test_needs_neither_torch_nor_python():
    libraries = subprocess.run(["ldd", RUNNER], capture_output=True, text=True).stdout
    assert "libc.so" in libraries and "torch" not in libraries and "python" not in libraries
    assert RUNNER.stat().st_size < 10 << 20


def test_both_programs_write_the_same_text(model):
    args = ["generate", "--model", model, "--prompt", "the memory", "--tokens", 40, "--seed", 3]
    assert runner(*args).stdout == ok(*args)


@pytest.mark.parametrize("format, dtype, more", [
    ("bf16", "BF16", []),
    ("int8", "I8", []),
    ("int4", "U8", ["--no-calibration"]),
    ("int4", "U8", ["--calibration-tokens", 1024]),
])
def test_converted_models_run(model, tmp_path, format, dtype, more):
    assert "was" in ok("convert", "--model", model, "--to", format, "--out", tmp_path / "small", *more)
    raw = (tmp_path / "small" / "model.safetensors").read_bytes()
    header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
    assert header["blocks.0.ffn.up.weight"]["dtype"] == dtype
    args = ["--prompt", "the memory", "--tokens", 20, "--temperature", 0]
    assert len(ok("generate", "--model", tmp_path / "small", *args)) > 10
    assert "parameters" in ok("inspect", "--model", tmp_path / "small")


def test_convert_refuses_what_it_cannot_do(model, tmp_path):
    result = run("convert", "--model", model, "--to", "int9", "--out", tmp_path / "x")
    assert result.returncode == 2 and "int8" in result.stderr and not (tmp_path / "x").exists()
    result = run("convert", "--model", model, "--to", "int8", "--out", model / "checkpoints" / "latest")
    assert result.returncode == 2 and "itself" in result.stderr
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    convert = ["convert", "--model", model, "--to", "int8", "--out", tmp_path / "taken"]
    result = run(*convert)
    assert result.returncode == 2 and "taken exists already" in result.stderr and "--force" in result.stderr
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["notes.txt"]
    ok(*convert, "--force")
    assert (tmp_path / "taken" / "notes.txt").exists() and (tmp_path / "taken" / "model.safetensors").exists()
    result = run("convert", "--model", tmp_path / "none", "--to", "int8", "--out", tmp_path / "x")
    assert result.returncode == 1 and "there is no" in result.stderr


def test_int4_is_fitted_to_the_text_that_is_given(model, tmp_path):
    convert = ["convert", "--model", model, "--to", "int4", "--threads", 1, "--out"]
    text = model.parent / "text.txt"
    ok(*convert, tmp_path / "a", "--calibrate", text, "--calibration-tokens", 1024)
    ok(*convert, tmp_path / "b", "--calibrate", text, "--calibration-tokens", 1024)
    ok(*convert, tmp_path / "c", "--no-calibration")
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b and a != c and len(a) == len(c)
    (tmp_path / "short.txt").write_text("too short")
    result = run(*convert, tmp_path / "d", "--calibrate", tmp_path / "short.txt")
    assert result.returncode == 1 and "at least 512" in result.stderr and not (tmp_path / "d").exists()
    result = run("convert", "--model", model, "--to", "int8", "--out", tmp_path / "d", "--calibrate", text)
    assert result.returncode == 2 and "--to int4" in result.stderr


@pytest.mark.parametrize("to", [["int8"], ["int4", "--no-calibration"]])
def test_damaged_checkpoints_of_integers_are_refused(model, tmp_path, to):
    ok("convert", "--model", model, "--out", tmp_path / "small", "--to", *to)
    shutil.copytree(tmp_path / "small", tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    result = run("generate", "--model", tmp_path / "cut", "--prompt", "x")
    assert result.returncode == 1 and "model.safetensors" in result.stderr


def test_bench_reports_every_figure():
    command = [sys.executable, ROOT / "bench" / "decode" / "bench.py", "--config", "configs/tiny.toml", "--seconds", "0",
               "--contexts", "0,64", "--batch", "1,3", "--format", "int8", "--threads", "1", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)["formats"][0]
    assert set(figures["decode_tokens_per_second_by_context"]) == {"0", "64"}
    assert set(figures["decode_tokens_per_second_by_sessions"]) == {"1", "3"}
    assert all(figures[name] > 0 for name in ("read_bandwidth", "prefill_flops", "matmul_flops", "first_token_seconds"))
