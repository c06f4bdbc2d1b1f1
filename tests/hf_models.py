"""Small models of `lattice train` for the test_hf_* modules; each is trained once for all of them."""

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from cli_program import PROGRAM, ok, settings, write_text

pytest.importorskip("transformers")
pytest.importorskip("peft")

import torch  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from transformers.utils import logging  # noqa: E402

import lattice  # noqa: E402
import lattice.hf  # noqa: E402

logging.disable_progress_bar()

RUNTIME = PROGRAM.parent / "lattice-run"
MEMORIES = [memory["name"] for memory in lattice.memories()]
TEXTS = ["the memory", "each is updated only with", "a fixed number of slots and", "t"]
SMALL = ["model.layers=2", "model.width=32", "train.seq_len=64", "train.batch_tokens=512", "train.warmup=2", "train.save_every=0",
         "train.eval_every=0", "train.precision=fp32"]  # fmt: skip


@functools.cache
def folder():
    path = Path(tempfile.mkdtemp(prefix="lattice-hf-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def text():
    return write_text(folder() / "text.txt")


def checkpoint(memory="lattice_dec", *more):
    """Of a model that has learned a little, so that its most likely tokens are not all the same."""
    return _trained(memory, *more)


@functools.cache
def _trained(memory, *more):
    run = folder() / "-".join([memory, *more]).replace("/", "_")
    steps = 60 if memory == "lattice_dec" else 3
    ok("train", "--data", text(), "--out", run, "--threads", 1,
       *settings(*SMALL, f"model.mixer={memory}", f"train.steps={steps}", *more))  # fmt: skip
    return (run / "checkpoints" / "latest").resolve()


def load(path=None, **options):
    """Model and tokenizer of a directory."""
    path = path or checkpoint()
    return AutoModelForCausalLM.from_pretrained(path, **options).eval(), AutoTokenizer.from_pretrained(path)


def written_by_cpp(path, prompt, tokens=24):
    """What `lattice-run generate` writes behind a prompt, always the most likely token."""
    command = [RUNTIME, "generate", "--model", path, "--prompt", prompt, "--temperature", 0, "--tokens", tokens, "--threads", 1]
    result = subprocess.run([str(word) for word in command], capture_output=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().removesuffix("\n")  # not as text: a carriage return stays one


def written(model, tokenizer, prompt, tokens=24, **options):
    """The same by generate()."""
    ids = tokenizer(prompt, return_tensors="pt")
    options = {"do_sample": False, "max_new_tokens": tokens} | options
    return tokenizer.decode(model.generate(**ids, **options)[0, ids.input_ids.shape[1] :], skip_special_tokens=True)


def close(a, b, tolerance=1e-5):
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance)
