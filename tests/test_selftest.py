"""python -m lattice.selftest, which people with a GPU run for us, on the CPU."""

import subprocess
import sys

import torch

from lattice import selftest


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "lattice.selftest", *arguments], capture_output=True, text=True)


def test_passes_on_the_cpu(capsys):
    assert selftest.main(["--device", "cpu", "--quick"]) == 0
    text = capsys.readouterr().out
    assert "no GPU here" in text and "all checks passed" in text and "FAILED" not in text


def test_a_wrong_result_is_reported(monkeypatch):
    """The device's results are the third that a check asks for."""
    right, calls = selftest.results, []

    def wrong(run, x, device, dtype):
        calls.append(device)
        out = right(run, x, device, dtype)
        return {name: y * 1.01 for name, y in out.items()} if len(calls) % 3 == 0 else out

    monkeypatch.setattr(selftest, "results", wrong)
    good, text = selftest.check_packed(torch.device("cpu"), 40)
    assert not good and "largest error 1.0e-02" in text


def test_an_exception_is_reported_and_the_rest_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(selftest, "check_scan", lambda device, T: 1 / 0)
    assert selftest.main(["--device", "cpu", "--quick"]) == 1
    text = capsys.readouterr().out
    assert "FAILED scan, all objectives" in text and "ZeroDivisionError" in text and "1 FAILED" in text


def test_no_gpu_is_said_in_one_sentence():
    if torch.cuda.is_available():
        return
    done = run("--device", "cuda")
    assert done.returncode == 2 and "torch sees no GPU here" in done.stderr
