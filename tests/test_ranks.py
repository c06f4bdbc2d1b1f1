"""Several processes that train together compute what one does, and leave checkpoints that any number can go on from."""

import json
import re
import shutil

import pytest
from cli_program import TINY, metrics, run, settings, write_text
from rank_program import command, distance, environment, weights

STEPS = ("train.seq_len=32", "train.micro_batch=1")  # 8 sequences a step


def train(text, out, ranks, *assignments, args=()):
    words = command(text, out, *STEPS, *assignments, args=("--ranks", ranks, *args))
    result = run(*words[1:], env=environment())
    assert result.returncode == 0, result.stderr
    return result.stdout


def losses(directory):
    return [line["loss"] for line in metrics(directory) if "loss" in line]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """One text, trained on by 1, 2 and 4 ranks."""
    path = tmp_path_factory.mktemp("ranks")
    write_text(path / "text.txt")
    shown = {}
    for ranks in (1, 2, 4):
        shown[ranks] = train(path / "text.txt", path / f"by-{ranks}", ranks, "train.save_every=10", "train.keep_last=5")
    return path, shown


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_compute_what_one_process_does(base, ranks):
    path, _ = base
    alone, together = metrics(path / "by-1"), metrics(path / f"by-{ranks}")
    assert [line["step"] for line in alone] == [line["step"] for line in together], "only one rank writes"
    for one, other in zip(alone, together):
        for key in ("loss", "bits_per_byte", "grad_norm"):
            if key in one:
                assert other[key] == pytest.approx(one[key], rel=1e-5), key
        assert one.get("tokens") == other.get("tokens")
    assert distance(weights(path / f"by-{ranks}", 20), weights(path / "by-1", 20)) < 1e-5
    assert losses(path / "by-1") != [1.0] * 20 and len(losses(path / "by-1")) == 20


def test_the_same_layout_gives_the_same_bits(base, tmp_path):
    path, _ = base
    train(path / "text.txt", tmp_path / "again", 2, "train.save_every=10", "train.keep_last=5")
    assert losses(tmp_path / "again") == losses(path / "by-2")
    for name in ("model", "optimizer-00001-of-00002", "optimizer-00002-of-00002"):
        file = f"checkpoints/step-20/{name}.safetensors"
        assert (tmp_path / "again" / file).read_bytes() == (path / "by-2" / file).read_bytes()


def test_moments_are_divided_among_ranks(base):
    path, shown = base
    whole = (path / "by-1/checkpoints/step-20/optimizer.safetensors").stat().st_size
    for ranks in (2, 4):
        held = int(re.search(r"([\d,]+) bytes of AdamW's moments", shown[ranks])[1].replace(",", ""))
        assert held <= whole / ranks * 1.02 + 1024
        shards = sorted((path / f"by-{ranks}/checkpoints/step-20").glob("optimizer-*"))
        assert len(shards) == ranks
        assert max(s.stat().st_size for s in shards) <= whole / ranks * 1.05 + 4096


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_checkpoint_names_its_own_files(base, ranks):
    """Ranks write beside each other; what one has not finished must not be taken for a file of the checkpoint."""
    path, _ = base
    for step in (10, 20):
        checkpoint = path / f"by-{ranks}/checkpoints/step-{step}"
        named = set(json.loads((checkpoint / "trainer.json").read_text())["checksums"])
        assert named == {file.name for file in checkpoint.iterdir()} - {"trainer.json"}


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_any_number_of_ranks_goes_on(base, tmp_path, ranks):
    path, _ = base
    shutil.copytree(path / "by-4", tmp_path / "run", symlinks=True)
    shutil.rmtree(tmp_path / "run/checkpoints/step-20")
    shown = train(path / "text.txt", tmp_path / "run", ranks, args=("--resume", "auto"))
    assert "from step 10" in shown
    assert distance(weights(tmp_path / "run", 20), weights(path / "by-1", 20)) < 1e-5
    assert [line["step"] for line in metrics(tmp_path / "run") if "loss" in line] == list(range(1, 21))


def test_a_checkpoint_without_a_shard_does_not_count(base, tmp_path):
    path, _ = base
    shutil.copytree(path / "by-4", tmp_path / "run", symlinks=True)
    (tmp_path / "run/checkpoints/step-20/optimizer-00003-of-00004.safetensors").unlink()
    shown = train(path / "text.txt", tmp_path / "run", 2, args=("--resume", "auto"))
    assert "optimizer-00003-of-00004.safetensors is missing" in shown and "step-10 instead" in shown
    assert distance(weights(tmp_path / "run", 20), weights(path / "by-1", 20)) < 1e-5


def test_carried_states_go_on_with_another_number_of_ranks(base, tmp_path):
    path, _ = base
    carry = ("train.carry_state=true", "train.save_every=5", "train.steps=10", "train.keep_last=5")
    train(path / "text.txt", tmp_path / "alone", 1, *carry)
    train(path / "text.txt", tmp_path / "run", 4, *carry)
    assert distance(weights(tmp_path / "run", 10), weights(tmp_path / "alone", 10)) < 1e-5
    shutil.rmtree(tmp_path / "run/checkpoints/step-10")
    train(path / "text.txt", tmp_path / "run", 2, *carry, args=("--resume", "auto"))
    assert distance(weights(tmp_path / "run", 10), weights(tmp_path / "alone", 10)) < 1e-5


def test_documents_of_different_number_on_each_rank(base, tmp_path):
    text = tmp_path / "documents.txt"
    lines = (base[0] / "text.txt").read_text().splitlines()
    text.write_text("".join(line + ("\n<|endoftext|>\n" if i % 7 == 0 or i % 3 == 1 else "\n") for i, line in enumerate(lines)))
    reset = ("data.reset_state=true", "train.steps=6", "train.recompute=true")
    for ranks in (1, 2):
        train(text, tmp_path / f"by-{ranks}", ranks, *reset)
    assert distance(weights(tmp_path / "by-2", 6), weights(tmp_path / "by-1", 6)) < 1e-5


def test_what_is_asked_must_fit(base, tmp_path):
    path, _ = base
    words = ["train", "--data", path / "text.txt", *settings(*TINY)]
    divided = run(*words, "--out", tmp_path / "run", "--ranks", 3, env=environment())
    assert divided.returncode == 1
    assert "4 sequences" in divided.stderr and "among 3 ranks" in divided.stderr
    nowhere = run(*words, "--ranks", 2, env=environment())
    assert nowhere.returncode == 2 and "--out" in nowhere.stderr
