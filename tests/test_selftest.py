"""python -m lattice.selftest, which people with a GPU run for us, on the CPU."""

import subprocess
import sys

import torch

import lattice
from lattice import selftest


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "lattice.selftest", *arguments], capture_output=True, text=True)


def test_passes_on_the_cpu(capsys):
    assert selftest.main(["--device", "cpu", "--quick"]) == 0
    text = capsys.readouterr().out
    assert "no GPU here" in text and "all checks passed" in text and "FAILED" not in text


def test_a_wrong_result_is_reported(capsys, monkeypatch):
    right = lattice.recur

    def wrong(rule, q, **x):
        y, state = right(rule, q=q, **x)
        return y * (1.01 if q.dtype == torch.float32 else 1.0), state

    monkeypatch.setattr(lattice, "recur", wrong)
    assert selftest.main(["--device", "cpu", "--quick"]) == 1
    text = capsys.readouterr().out
    assert "FAILED other memories" in text and "1 FAILED" in text


def test_no_gpu_is_said_in_one_sentence():
    if torch.cuda.is_available():
        return
    done = run("--device", "cuda")
    assert done.returncode == 2 and "torch sees no GPU here" in done.stderr
