"""`lattice train`: what it leaves behind, that it learns, and that a resumed run is the uninterrupted one."""

import json
import shutil
import signal
import subprocess
import time

import pytest
from cli_program import PROGRAM, ROOT, TINY, metrics, ok, run, settings, train, write_text
from safetensors import safe_open


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("train")
    write_text(path / "text.txt")
    train(path / "text.txt", path / "whole")
    return path


def weights(checkpoint):
    return (checkpoint / "model.safetensors").read_bytes()


def losses(run_directory):
    return [(line["step"], line["loss"], line["grad_norm"]) for line in metrics(run_directory) if "loss" in line]


def test_the_loss_falls_and_the_metrics_say_so(base):
    lines = [line for line in metrics(base / "whole") if "loss" in line]
    assert [line["step"] for line in lines] == list(range(1, 21))
    assert {"bits_per_byte", "lr", "grad_norm", "tokens", "tokens_per_s", "elapsed"} <= set(lines[0])
    assert lines[0]["bits_per_byte"] == pytest.approx(8, abs=0.3), "an untrained model knows nothing about 257 tokens"
    assert lines[-1]["bits_per_byte"] < 0.75 * lines[0]["bits_per_byte"]
    assert lines[-1]["tokens"] == 20 * 256
    final = [line for line in metrics(base / "whole") if "valid_bits_per_byte" in line]
    assert [line["step"] for line in final] == [20] and final[0]["valid_bits_per_byte"] < 6


def test_a_checkpoint_is_what_the_ecosystem_reads(base):
    latest = base / "whole" / "checkpoints" / "latest"
    assert latest.is_symlink() and str(latest.readlink()) == "step-20"
    config = json.loads((latest / "config.json").read_text())
    assert config["model_type"] == "lattice" and config["mixer"] == "lattice_dec" and config["vocab_size"] == 257
    with safe_open(latest / "model.safetensors", "pt") as file:
        assert file.get_tensor("embed.weight").shape == (257, 32)
        total = sum(file.get_tensor(name).numel() for name in file.keys())
    report = json.loads(ok("inspect", "--model", base / "whole", "--json"))
    assert report["parameters"]["total"] == total
    trainer = json.loads((latest / "trainer.json").read_text())
    assert trainer["step"] == 20 and trainer["precision"] == "fp32" and trainer["threads"] == 2


def test_resumed_training_is_bit_identical(base, tmp_path):
    # A run that saves at step 8 and is cut there, as a crash would leave it.
    train(base / "text.txt", tmp_path / "cut", "train.save_every=8", "train.keep_last=9")
    for later in ("step-16", "step-20"):
        shutil.rmtree(tmp_path / "cut" / "checkpoints" / later)
    (tmp_path / "cut" / "checkpoints" / "latest").unlink()
    ok("train", "--out", tmp_path / "cut", "--resume", "auto", "--threads", 2)
    assert losses(tmp_path / "cut") == losses(base / "whole")
    assert weights(tmp_path / "cut/checkpoints/step-20") == weights(base / "whole/checkpoints/step-20")


def test_losses_do_not_depend_on_the_number_of_threads(base, tmp_path):
    """Up to the rounding of the matrix library, which splits products by threads."""
    expected = [loss for _, loss, _ in losses(base / "whole")]
    for threads in (1, 3):
        ok("train", "--data", base / "text.txt", "--out", tmp_path / str(threads), "--threads", threads, *settings(*TINY))
        assert [loss for _, loss, _ in losses(tmp_path / str(threads))] == pytest.approx(expected, rel=1e-5), threads


def test_a_signal_saves_and_the_run_goes_on(base, tmp_path):
    command = [PROGRAM, "train", "--data", base / "text.txt", "--out", tmp_path / "run", "--threads", "2",
               *settings(*TINY, "train.steps=100000")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "run" / "metrics.jsonl"
    for _ in range(600):
        if log.exists() and len(log.read_text().splitlines()) > 3:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"lattice train --out {tmp_path / 'run'} --resume latest" in out
    step = json.loads((tmp_path / "run/checkpoints/latest/trainer.json").read_text())["step"]
    assert step >= 3
    more = ok("train", "--out", tmp_path / "run", "--resume", "latest", "--set", f"train.steps={step + 2}")
    assert f"from step {step}" in more
    assert metrics(tmp_path / "run")[-2]["step"] == step + 2


def test_data_alone_is_enough(base, tmp_path):
    out = ok("train", "--data", base / "text.txt", "--set", "train.steps=2", cwd=tmp_path)
    assert "runs/text-lattice_dec-1" in out
    assert (tmp_path / "runs/text-lattice_dec-1/checkpoints/latest/model.safetensors").exists()
    assert (tmp_path / "runs/text-lattice_dec-1/config.toml").exists()


@pytest.mark.parametrize("mixer", ["lattice_enc", "lattice_sim", "linear_attention", "mamba2", "gla", "deltanet",
                                   "gated_deltanet", "rwkv7", "ttt", "mlstm", "transformer"])
def test_every_mixer_trains(base, tmp_path, mixer):
    train(base / "text.txt", tmp_path / "run", f"model.mixer={mixer}", "train.steps=8")
    found = [line["bits_per_byte"] for line in metrics(tmp_path / "run") if "bits_per_byte" in line]
    assert found[-1] < found[0] - 0.5


def test_states_carried_over_segments(base, tmp_path):
    train(base / "text.txt", tmp_path / "run", "train.carry_state=true", "train.steps=8")
    assert (tmp_path / "run/checkpoints/latest/states.safetensors").exists()


def test_a_sentencepiece_model_is_trained_and_used(base, tmp_path):
    out = ok("tokenizer", "train", "--data", base / "text.txt", "--vocab", 320, "--out", tmp_path / "t.model")
    assert "320 pieces" in out
    train(base / "text.txt", tmp_path / "run", f"data.tokenizer={tmp_path / 't.model'}", "train.steps=4")
    assert (tmp_path / "run/checkpoints/latest/tokenizer.model").exists()
    first = metrics(tmp_path / "run")[0]
    assert first["loss"] / 0.6931 > first["bits_per_byte"], "a piece stands for more than one byte"
    ids = ok("tokenizer", "encode", "--tokenizer", tmp_path / "t.model", "--text", "the memory").split()
    assert 0 < len(ids) < len("the memory")


def wrong(result, code, *parts):
    assert result.returncode == code, result.stderr
    assert result.stderr.count("\n") <= 2 and "Exception raised" not in result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr


def test_wrong_use_is_named(base, tmp_path):
    text = base / "text.txt"
    wrong(run("train"), 2, "--data FILE")
    wrong(run("train", "--data", text, "--set", "train.stepz=3"), 2, "stepz", "steps")
    wrong(run("train", "--data", text, "--set", "model.mixer=latice_dec"), 2, "latice_dec", "lattice_dec")
    wrong(run("train", "--data", text, "--set", "model.heads=3"), 2, "heads", "width")
    wrong(run("train", "--data", text, "--config", tmp_path / "none.toml"), 2, "none.toml")
    wrong(run("train", "--data", text, "--resume", "auto"), 2, "--out")
    wrong(run("train", "--data", text, "--out", base / "whole"), 2, "--resume auto")
    assert run("train", "--nonsense").returncode == 2
    assert run("nonsense").returncode == 2
    assert run().returncode == 2


def test_bad_text_and_bad_checkpoints_are_named(base, tmp_path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "short.txt").write_text("short")
    wrong(run("train", "--data", tmp_path / "empty.txt", "--out", tmp_path / "r"), 1, "empty")
    wrong(run("train", "--data", tmp_path / "short.txt", "--out", tmp_path / "r"), 1, "too few", "train.seq_len")
    wrong(run("train", "--data", tmp_path / "none.txt", "--out", tmp_path / "r"), 1, "none.txt")
    assert not (tmp_path / "r").exists(), "bad input leaves no run behind"
    step = base / "whole/checkpoints/step-20"
    options = ["--data", base / "text.txt", "--out", tmp_path / "r", *settings(*TINY, "train.steps=30")]
    wrong(run("train", *options, "--resume", step, "--set", "model.mixer=deltanet"), 1, "another architecture", "deltanet")
    wrong(run("train", *options, "--resume", tmp_path), 1, "neither a checkpoint")
    wrong(run("train", "--out", base / "whole", "--resume", "latest"), 1, "complete", "train.steps")
    assert "the run is complete" in ok("train", "--out", base / "whole", "--resume", "auto")


def test_binary_text_trains_as_bytes(tmp_path):
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 40)
    train(tmp_path / "binary.txt", tmp_path / "run", "train.steps=2")


def test_help_shows_an_example():
    for command in (["train"], ["generate"], ["inspect"], ["demo"], ["tokenizer"], ["tokenizer", "train"]):
        out = ok(*command, "--help")
        assert "Example" in out and "./lattice " + " ".join(command) in out
    assert "train.batch_tokens" in ok("train", "--help")


def test_the_end_names_the_next_commands(base, tmp_path):
    # Asked from elsewhere: paths hold from there.
    out = ok("train", "--data", base / "text.txt", "--out", "my run", "--threads", 2, *settings(*TINY), cwd=tmp_path)
    end = out.split("Next:\n")[1].splitlines()
    launcher = end[0].split()[0]
    assert (tmp_path / launcher).resolve() == ROOT / "lattice"
    assert end[0] == f"  {launcher} generate --model 'my run' --prompt 'It was'"
    assert end[1].startswith(f"  {launcher} serve --model 'my run' ")
    assert end[3] == "The report of the run: my run/report.html" and (tmp_path / "my run/report.html").exists()
    assert "held out" in out and "warning" not in out


def test_a_run_without_validation_warns(base, tmp_path):
    out = train(base / "text.txt", tmp_path / "run", "data.valid_fraction=0")
    before, after = out.split("step 20/20")
    assert "warning     no text is held out" in before and "warning: no text was held out" in after


def test_a_device_that_it_does_not_train_on_is_said(base):
    result = run("train", "--data", base / "text.txt", "--device", "cuda")
    assert result.returncode == 2
    assert "trains on the CPU only" in result.stderr and "docs/gpu.md" in result.stderr
