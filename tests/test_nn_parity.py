"""lattice.nn against the C++ programs: initial values, losses and gradients of the trainer, log-probabilities of the runtime,
and the losses of examples/train.py."""

import sys

import cli_program
import pytest
import torch
from nn_models import MEMORIES, OPTIONS
from safetensors.torch import load_file
from serve_program import serve

from lattice.nn import Config, LanguageModel, load_settings

sys.path.insert(0, str(cli_program.ROOT / "examples"))
import train as example  # noqa: E402

T = 64
# One window, so that every step has this batch; without beta1 and clipping the first moment is the gradient.
TEXT = b"the memory holds a fixed number of slots; each is written by what is new."[: T + 1]
ONE_BATCH = [f"train.seq_len={T}", f"train.batch_tokens={T}", "train.steps=2", "train.lr=0.02", "train.beta1=0", "train.clip=0",
             "train.warmup=0", "train.save_every=1", "train.keep_last=9", "train.log_every=1", "train.eval_every=0", "train.spike=off",
             "train.precision=fp32", "train.seed=11"]
CASES = {name: dict(mixer=name) for name in MEMORIES} | OPTIONS


def run_in_cpp(directory, keys):
    """Two steps of the C++ trainer on TEXT: the checkpoints after each, and the losses."""
    text = directory / "text.txt"
    text.write_bytes(TEXT)
    keys = dict(layers=2, width=32, heads=2) | keys
    model = [f"model.{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in keys.items()]
    cli_program.ok("train", "--data", text, "--valid", text, "--out", directory / "run", "--threads", 1,
                   *cli_program.settings(*ONE_BATCH, *model))
    losses = [row["loss"] for row in cli_program.metrics(directory / "run") if "loss" in row]
    checkpoints = sorted(path for path in (directory / "run" / "checkpoints").iterdir() if path.is_dir() and not path.is_symlink())
    return checkpoints, losses


def loss_and_gradients(model):
    tokens = torch.tensor([list(TEXT)])
    loss, _ = model(tokens[:, :-1], targets=tokens[:, 1:])
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_those_of_the_trainer(case, tmp_path):
    checkpoints, losses = run_in_cpp(tmp_path, CASES[case])
    assert len(checkpoints) == 2 and len(losses) == 2
    trained = LanguageModel.from_checkpoint(checkpoints[0])
    start = LanguageModel(trained.config, seed=11)
    for model, checkpoint, expected in zip((start, trained), checkpoints, losses):
        loss, gradients = loss_and_gradients(model)
        assert loss == pytest.approx(expected, rel=2e-6)
        moments = load_file(checkpoint / "optimizer.safetensors")
        assert {f"exp_avg.{name}" for name in gradients} == {name for name in moments if name.startswith("exp_avg.")}
        scale = max(gradient.norm() for gradient in gradients.values())
        for name, gradient in gradients.items():
            off = (gradient - moments[f"exp_avg.{name}"]).norm()
            assert off <= 1e-5 * gradient.norm() + 1e-7 * scale, f"{name}: off by {off / gradient.norm():.1e}"
    tensors = load_file(checkpoints[0] / "model.safetensors")
    missing, unexpected = LanguageModel(trained.config).load_state_dict(tensors)
    assert not missing and not unexpected


@pytest.mark.parametrize("mixer", ["lattice_dec", "mlstm", "rwkv7", "transformer"])
def test_logits_are_those_of_the_runtime(mixer, tmp_path):
    checkpoints, _ = run_in_cpp(tmp_path, dict(mixer=mixer))
    with serve(checkpoints[-1]) as server:
        status, answer = server.call("/v1/completions", dict(prompt=TEXT.decode(), max_tokens=0, echo=True, logprobs=0))
    assert status == 200, answer
    expected = torch.tensor(answer["choices"][0]["logprobs"]["token_logprobs"][1:])
    tokens = torch.tensor([list(TEXT)])
    with torch.no_grad():
        logits, _ = LanguageModel.from_checkpoint(checkpoints[-1])(tokens)
    got = logits[0, :-1].log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0]
    torch.testing.assert_close(got, expected, rtol=2e-5, atol=2e-5)


def test_the_example_reaches_the_losses_of_the_trainer(tmp_path):
    settings = ["model.layers=1", "model.width=32", "train.seq_len=64", "train.batch_tokens=256", "train.steps=30", "train.warmup=5",
                "train.log_every=1", "data.shuffle=false", "train.precision=fp32", "train.eval_every=0", "data.valid_fraction=0",
                "train.save_every=0"]
    text = cli_program.write_text(tmp_path / "text.txt")
    cli_program.ok("train", "--data", text, "--valid", text, "--out", tmp_path / "run", "--threads", 2, *cli_program.settings(*settings))
    expected = [row["loss"] for row in cli_program.metrics(tmp_path / "run") if "loss" in row]
    model, losses = example.train_model(text.read_bytes(), load_settings("tiny", settings), report=lambda line: None)
    assert len(losses) == len(expected) == 30 and losses[-1] < losses[0] - 0.5
    # The gradients agree to 1e-5; Adam's steps amplify what rounding leaves.
    torch.testing.assert_close(torch.tensor(losses[:20]), torch.tensor(expected[:20]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-2, atol=1e-2)
    model.save_checkpoint(tmp_path / "saved")
    assert Config.from_checkpoint(tmp_path / "saved") == model.config
