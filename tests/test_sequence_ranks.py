"""Ranks that share sequences, a piece each, compute what one process with whole sequences does."""

import json
import re
import resource
import shutil
import signal

import lattice
import pytest
from cli_program import metrics, run, write_text
from rank_program import command, distance, environment, finish, start_all, wait_until, weights

# 8 sequences of 48 tokens a step, in micro-batches of 2. With this epsilon AdamW's update is in proportion to the gradient, so
# weights agree as far as gradients do; with a small one, weights whose gradient is next to nothing move by its sign.
STEPS = ("train.seq_len=48", "train.batch_tokens=384", "train.micro_batch=2", "model.layers=2", "train.steps=10",
         "train.adam_eps=1", "train.lr=0.1")
RECURRENT = [memory["name"] for memory in lattice.memories() if not memory["attention"]]
WINDOW = ("model.block=attention", "model.heads=4", "model.kv_heads=2", "model.window=7", "model.sinks=2")
MODELS = {name: (f"model.mixer={name}",) for name in RECURRENT} | {
    "beside a window": ("model.mixer=lattice_dec+window", *WINDOW),
    "windows and memories": ("model.mixers=gla+window,transformer+window", *WINDOW),
    "in attention's block": ("model.mixer=gated_deltanet", "model.block=attention", "model.heads=4"),
    "chunk form": ("model.method=linear2", "model.chunk=8", "model.normalize=chunk"),
    "rotated": ("model.rope_period=20",),
}


def attempt(text, out, ranks, *assignments, args=(), **options):
    words = command(text, out, *STEPS, *assignments, args=("--ranks", ranks, *args))
    return run(*words[1:], env=environment(), **options)


def train(text, out, ranks, *assignments, args=()):
    result = attempt(text, out, ranks, *assignments, args=args)
    assert result.returncode == 0, result.stderr
    return result.stdout


def shared(number):
    return f"train.sequence_ranks={number}"


def same_training(one, other, steps=10):
    """To 1e-5: every step's loss and norm of the gradient, and the weights behind the last."""
    for a, b in zip(metrics(one), metrics(other), strict=True):
        for key in ("loss", "bits_per_byte", "grad_norm", "valid_loss"):
            assert (key in a) == (key in b)
            assert key not in a or a[key] == pytest.approx(b[key], rel=1e-5), (key, a["step"])
        assert a.get("tokens") == b.get("tokens")
    assert distance(weights(one, steps), weights(other, steps)) < 1e-5


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("sequences") / "text.txt")


@pytest.fixture(scope="module")
def alone(text):
    """Lattice by one process, with a checkpoint in the middle."""
    train(text, text.parent / "alone", 1, "train.save_every=5", "train.keep_last=5")
    return text.parent / "alone"


@pytest.mark.parametrize("name", MODELS)
def test_two_ranks_compute_what_one_does(text, tmp_path, name):
    train(text, tmp_path / "alone", 1, *MODELS[name])
    shown = train(text, tmp_path / "shared", 2, shared(2), *MODELS[name])
    assert "a piece of 24 tokens of each of 8 sequences" in shown
    same_training(tmp_path / "shared", tmp_path / "alone")


@pytest.mark.parametrize("ranks, sequence_ranks, micro", [(4, 4, 2), (4, 2, 1), (4, 2, 4), (3, 3, 3), (4, 4, 8), (6, 3, 1)])
def test_any_layout_computes_what_one_process_does(text, alone, tmp_path, ranks, sequence_ranks, micro):
    """Data and sequence parallel together; fewer, as many and more micro-batches than ranks, and a last one that is smaller."""
    train(text, tmp_path / "run", ranks, shared(sequence_ranks), f"train.micro_batch={micro}", "train.save_every=5", "train.keep_last=5")
    same_training(tmp_path / "run", alone)


def test_pieces_shorter_than_the_convolutions(text, tmp_path):
    for ranks in (1, 4):
        train(text, tmp_path / f"by-{ranks}", ranks, shared(ranks), "train.seq_len=8", "train.batch_tokens=64")
    same_training(tmp_path / "by-4", tmp_path / "by-1")


def test_the_same_layout_gives_the_same_bits_also_when_pieces_are_computed_twice(text, tmp_path):
    layout = (shared(2), "train.save_every=5", "train.keep_last=5")
    for name, more in {"once": (), "again": (), "twice": ("train.recompute=true",)}.items():
        train(text, tmp_path / name, 4, *layout, *more)
    files = [f"checkpoints/step-10/optimizer-{i:05}-of-00004.safetensors" for i in (1, 2, 3, 4)]
    for file in ("checkpoints/step-10/model.safetensors", *files):
        for name in ("again", "twice"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "once" / file).read_bytes()


@pytest.mark.parametrize("ranks, sequence_ranks", [(1, 1), (2, 1), (2, 2), (4, 2)])
def test_any_layout_goes_on(text, alone, tmp_path, ranks, sequence_ranks):
    run_directory = tmp_path / "run"
    train(text, run_directory, 4, shared(4), "train.save_every=5", "train.keep_last=5")
    whole = weights(run_directory, 10)
    shutil.rmtree(run_directory / "checkpoints/step-10")
    shown = train(text, run_directory, ranks, shared(sequence_ranks), args=("--resume", "auto"))
    assert "from step 5" in shown
    assert distance(weights(run_directory, 10), whole) < 1e-5
    assert distance(weights(run_directory, 10), weights(alone, 10)) < 1e-5


def test_a_rank_that_is_killed_is_named(text, tmp_path):
    words = command(text, tmp_path / "run", *STEPS, shared(2), "train.steps=1000000", "train.save_every=20", args=("--fault-timeout", 3))
    processes = start_all(words, 4)
    wait_until(lambda: (tmp_path / "run/checkpoints/latest").exists(), "a checkpoint")
    processes[2].send_signal(signal.SIGKILL)
    for rank, (code, err) in enumerate(finish(processes)):
        if rank != 2:
            assert code == 1 and "rank 2 on host" in err and "is lost" in err and "--resume auto" in err, err


def test_a_timeline_shows_what_ranks_do(text, tmp_path):
    train(text, tmp_path / "run", 2, shared(2), "train.steps=2", args=("--timeline",))
    for rank in (0, 1):
        events = json.loads((tmp_path / f"run/timeline-{rank}.json").read_text())["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        assert {event["pid"] for event in events} == {rank} and all(event["dur"] >= 0 for event in spans)
        count = {name: sum(event["name"] == name for event in spans) for name in ("forward", "backward", "wait for sums", "update")}
        assert count == {"forward": 8, "backward": 8, "wait for sums": 2, "update": 2}, "a piece of each of 4 micro-batches, twice"
        assert {"sum", "gather"} <= {event["name"] for event in spans if event["tid"] == 1}
    alone = attempt(text, tmp_path / "alone", 1, args=("--timeline",))
    assert alone.returncode == 2 and "--timeline" in alone.stderr


def test_what_is_asked_must_fit(text, tmp_path):
    def refused(ranks, *assignments, says):
        result = attempt(text, tmp_path / "run", ranks, *assignments)
        assert result.returncode == 1, result.stdout
        first = [line for line in result.stderr.splitlines() if line.startswith("lattice: ")][0]
        assert all(word in first for word in says), result.stderr
        assert not (tmp_path / "run").exists()

    refused(1, shared(2), says=["train.sequence_ranks = 2", "there is 1 rank", "--ranks 2"])
    refused(3, shared(2), says=["train.sequence_ranks = 2", "there are 3 ranks", "a multiple of 2"])
    refused(2, shared(4), says=["there are 2 ranks", "a multiple of 4"])
    refused(2, shared(2), "train.seq_len=49", "train.batch_tokens=392", says=["train.seq_len = 49", "2 pieces", "a multiple of 2"])
    refused(4, shared(2), "train.batch_tokens=144", says=["3 sequences", "among 2 groups of 2 ranks", "a multiple of 96"])
    refused(2, shared(2), "model.mixer=transformer", says=["transformer", "attends to all tokens", "+window"])
    refused(2, shared(2), "model.mixers=lattice_dec,transformer", says=["lattice_dec,transformer attends to all tokens"])
    refused(2, shared(2), "train.carry_state=true", says=["train.carry_state", "set one of them"])
    refused(2, shared(2), "data.reset_state=true", says=["data.reset_state", "set one of them"])
    refused(2, shared(2), "model.method=linear1", "model.chunk=16", "model.normalize=chunk", says=["a piece of 24 tokens", "model.chunk = 16"])
    wrong = attempt(text, tmp_path / "run", 2, shared(0))
    assert wrong.returncode == 2 and "train.sequence_ranks" in wrong.stderr


def peak(shown):
    number, unit = re.search(r"peak memory ([\d.]+) (\w+)", shown).groups()
    return float(number) * {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]


def test_a_sequence_four_times_longer_than_fits_trains(tmp_path):
    """Under one limit for the memory of a process, with a model whose activations take most of it."""
    text = write_text(tmp_path / "text.txt", lines=2000)
    limit = 800 * 2**20
    model = ("model.layers=4", "model.width=128", "model.heads=2", "train.micro_batch=1", "train.steps=1", "data.valid_fraction=0.4")

    def limited(out, ranks, length):
        return attempt(text, tmp_path / out, ranks, *model, shared(ranks), f"train.seq_len={length}", f"train.batch_tokens={2 * length}",
                       "train.recompute=" + ("true" if ranks > 1 else "false"),
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))

    fits = limited("fits", 1, 4096)
    assert fits.returncode == 0, fits.stderr
    too_long = limited("too-long", 1, 16384)
    assert too_long.returncode == 1 and "memory" in too_long.stderr, too_long.stderr
    divided = limited("divided", 4, 16384)
    assert divided.returncode == 0, divided.stderr
    assert "a piece of 4096 tokens" in divided.stdout
    assert peak(divided.stdout) < 1.25 * peak(fits.stdout)
    assert [line["loss"] for line in metrics(tmp_path / "divided") if "loss" in line][0] < 6
