"""What a training run survives: being killed anywhere, a full disk, a damaged checkpoint, a second process."""

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli_program import PROGRAM, TINY, metrics, ok, run, settings, train, write_text

SAVING = ("train.save_every=2", "train.steps=240", "train.eval_every=100", "train.keep_last=2")
PATIENCE = 600  # seconds for a program on a machine under load
KILLS = 20


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults")
    write_text(path / "text.txt")
    train(path / "text.txt", path / "whole", *SAVING)
    return path


def command(base, out, *more):
    return [PROGRAM, "train", "--data", base / "text.txt", "--out", out, "--threads", "2", "--resume", "auto",
            *settings(*TINY, *SAVING), *more]


def losses(run_directory):
    return [(line["step"], line["loss"], line["grad_norm"]) for line in metrics(run_directory) if "loss" in line]


def weights(run_directory, name="model.safetensors"):
    return (run_directory / "checkpoints" / "step-240" / name).read_bytes()


def wait_for(condition, process, seconds=20.0):
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end and not condition():
        time.sleep(0.0005)


def test_killed_at_twenty_moments_the_run_is_the_unkilled_one(base, tmp_path):
    """Half of the kills hit a checkpoint that is being written, the others a random moment."""
    chance = random.Random(4)
    out = tmp_path / "killed"
    killed = while_saving = 0
    while killed < KILLS:
        process = subprocess.Popen(command(base, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        checkpoints = out / "checkpoints"
        newest = os.readlink(checkpoints / "latest") if (checkpoints / "latest").is_symlink() else ""
        if killed % 2 == 0:
            wait_for(lambda: checkpoints.exists() and any(checkpoints.glob(".saving-step*")), process)
        else:
            # Once it has gone on for a step or two, at any moment of the next 60 ms.
            wait_for(lambda: (checkpoints / "latest").is_symlink() and os.readlink(checkpoints / "latest") != newest, process)
            time.sleep(chance.random() * 0.06)
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL, err
        killed += 1
        while_saving += any(checkpoints.glob(".saving-step*")) if checkpoints.exists() else 0
    assert while_saving >= 3, "no kill hit a checkpoint in the making"
    if not (out / "checkpoints" / "step-240").exists():
        subprocess.run(command(base, out), check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    assert killed == KILLS
    assert losses(out) == losses(base / "whole")
    assert weights(out) == weights(base / "whole")
    assert weights(out, "optimizer.safetensors") == weights(base / "whole", "optimizer.safetensors")
    assert not list((out / "checkpoints").glob(".saving*")), "what the killed ones left is cleared away"


def test_a_full_disk_does_not_end_training(base, tmp_path):
    """On a real file system of 480 KiB: room for one checkpoint, not for two."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=480k", "tmpfs", disk], capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    try:
        small = command(base, disk / "run", *settings("train.save_patience=1", "train.keep_last=1"))
        result = subprocess.run(small, capture_output=True, text=True, timeout=PATIENCE)
        assert "No space left" in result.stdout and "training goes on" in result.stdout, result.stdout
        kept = sorted((disk / "run" / "checkpoints").glob("step-*"))
        assert kept, "the old checkpoint is kept"
        assert result.returncode == 1 and "not saved" in result.stderr
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        ok(*small[1:])
        assert losses(disk / "run") == losses(base / "whole")
        assert weights(disk / "run") == weights(base / "whole")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(base, tmp_path):
    train(base / "text.txt", tmp_path / "run", *SAVING)
    # On a slow disk saves are skipped, so the one before is not always two steps older.
    saved = sorted((tmp_path / "run" / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))
    assert saved[-1].name == "step-240"
    newest = saved[-1] / "optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    out = ok(*command(base, tmp_path / "run")[1:])
    assert "damaged" in out and "going on from" in out and f"{saved[-2].name} instead" in out
    assert losses(tmp_path / "run") == losses(base / "whole")
    assert weights(tmp_path / "run") == weights(base / "whole")


def test_a_second_process_is_refused(base, tmp_path):
    first = subprocess.Popen(command(base, tmp_path / "run", *settings("train.steps=100000")), stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: (tmp_path / "run" / "checkpoints" / "latest").exists(), first)
        second = run(*command(base, tmp_path / "run")[1:])
        assert second.returncode == 1 and "another process is training" in second.stderr
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=PATIENCE) == 0, "SIGTERM saves and exits 0"


def pending(process, number):
    """Whether a signal was sent and not yet taken: a second one would be lost."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"ShdPnd:\s+(\w+)", status)[1], 16) >> (number - 1) & 1


def test_a_second_signal_ends_at_once(base, tmp_path):
    """The first one finishes a step, which takes seconds here."""
    slow = settings("train.batch_tokens=262144", "train.micro_batch=8", "train.steps=100000")
    process = subprocess.Popen(command(base, tmp_path / "run", *slow), stdout=subprocess.PIPE, text=True)
    assert "model" in process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: not pending(process.pid, signal.SIGINT), process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 128 + signal.SIGINT, "0 had it finished the step"
