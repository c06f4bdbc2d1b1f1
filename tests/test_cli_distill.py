"""`./lattice distill`: a tiny Transformer is trained, converted and resumed; what cannot be converted is refused. The
commands are those of docs/distillation.md."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import time

import cli_program
import pytest

DOC = cli_program.ROOT / "docs" / "distillation.md"
TEXT = b"".join(b"the %s %s the %s.\n" % (a, b, c) for a in (b"cat", b"dog", b"fox", b"owl") for b in (b"saw", b"met", b"fed")
                for c in (b"hen", b"pig", b"cow", b"ram", b"bee")) * 6


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a text and a Transformer that was trained on it for some steps."""
    root = tmp_path_factory.mktemp("distill")
    (root / "book.txt").write_bytes(TEXT)
    cli_program.ok("train", "--data", root / "book.txt", "--out", root / "runs/teacher", "--threads", 1, *cli_program.settings(
        "model.mixer=transformer", "model.layers=2", "model.width=32", "model.heads=4", "model.kv_heads=2", "train.steps=40",
        "train.seq_len=64", "train.batch_tokens=512", "train.lr=0.01", "train.eval_every=0", "train.warmup=5"))
    return root


def short(*more):
    return cli_program.settings("train.steps=6", "train.seq_len=64", "train.batch_tokens=128", "train.log_every=1", "train.eval_every=3",
                                "train.save_every=3", "model.window=8", "model.sinks=2", *more)


def distill(place, out, *more, student="convert-hybrid", run=cli_program.ok):
    return run("distill", "--teacher", place / "runs/teacher", "--student", student, "--data", place / "book.txt", "--out", place / out,
               "--threads", 1, *more)


def test_every_stage_runs_and_the_result_is_a_model(place):
    for stage in ("imitate", "match", "tune"):
        distill(place, "hybrid", "--stage", stage, *short("model.mixers=lattice_dec+window,transformer"))
        rows = cli_program.metrics(place / "hybrid" / stage)
        assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5, 6]
        assert sum("valid_perplexity" in row for row in rows) == 2
    assert "report" in " ".join(path.name for path in (place / "hybrid/match").iterdir())
    shape = json.loads((place / "hybrid/match/checkpoints/latest/config.json").read_text())
    assert (shape["mixers"], shape["kv_heads"], shape["window"]) == ("lattice_dec+window,transformer", 2, 8)
    cli_program.ok("verify", place / "hybrid/tune", "--data", place / "book.txt", "--kib", 2, "--tokens", 100, "--greedy", 20)
    assert cli_program.ok("generate", "--model", place / "hybrid/tune", "--prompt", "the cat", "--tokens", 40)
    result = cli_program.run("distill", "--teacher", place / "hybrid/tune", "--student", "convert-hybrid", "--data", place / "book.txt", "--out",
                             place / "refused")
    assert result.returncode != 0 and "a teacher has attention in every layer" in result.stderr


def test_before_a_step_the_window_is_the_teacher(place):
    """A student whose window holds all of a sequence has nothing to learn."""
    settings = short("model.window=64", "train.lr=0", "train.min_lr=0", "train.steps=1", "train.eval_tokens=1024")
    distill(place, "same", "--learn", "new", *settings)
    row = [r for r in cli_program.metrics(place / "same/imitate") if "loss" in r][0]
    assert row["loss"] < 1e-9


def test_a_killed_stage_goes_on(place):
    whole = short("train.steps=12", "train.save_every=2")
    distill(place, "whole", *whole)
    command = [cli_program.PROGRAM, "distill", "--teacher", place / "runs/teacher", "--student", "convert-hybrid", "--data",
               place / "book.txt", "--out", place / "cut", "--threads", "1", *whole]
    running = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (place / "cut/imitate/checkpoints/latest").exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    distill(place, "cut", *whole)
    weights = [(place / run / "imitate/checkpoints/latest/model.safetensors").read_bytes() for run in ("whole", "cut")]
    assert weights[0] == weights[1]
    assert "complete" in distill(place, "cut", *whole)


@pytest.mark.parametrize("more,words", [
    (["--stage", "later"], "imitate, match and tune"),
    (["--learn", "nothing"], "mixers, new and all"),
    (["--stage", "tune"], "--stage imitate or match before"),
    (["--set", "model.block=paper"], "block"),
    (["--set", "model.kv_heads=1"], "kv_heads"),
    (["--set", "model.mixer=mamba2"], "mamba2"),
])
def test_what_cannot_be_converted_is_refused(place, more, words):
    result = distill(place, "refused", *more, run=cli_program.run)
    assert result.returncode != 0 and words in result.stderr
    assert not (place / "refused").exists()


def test_a_student_with_nothing_new_says_what_could_learn(place):
    result = distill(place, "nothing-new", "--learn", "new", "--set", "model.mixer=transformer+window", run=cli_program.run)
    assert result.returncode == 1 and "--learn mixers" in result.stderr


def test_another_tokenizer_is_refused(place):
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that stand for themselves in such files
    spelled = [chr(byte) for byte in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    (place / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate([*spelled, "th"])}))
    (place / "merges.txt").write_text("#version: 0.2\nt h\n")
    result = distill(place, "refused", "--set", f"data.tokenizer={place}/vocab.json", run=cli_program.run)
    assert result.returncode == 2 and "is not that of the teacher" in result.stderr
    assert not (place / "refused").exists()


def commands():
    """The commands of the page, line by line, those that go on in the next line joined."""
    text = DOC.read_text()
    found = re.findall(r"```\n(\./lattice .*?)```", text, re.S)
    return [shlex.split(line) for block in found for line in block.replace("\\\n", " ").splitlines() if line]


def test_the_commands_of_the_page_run(place):
    asked = commands()
    assert {line[1] for line in asked} >= {"distill", "eval"}
    for line in asked:
        if line[1] in ("import", "reproduce"):  # these have tests of their own
            continue
        words = [word if not word.startswith(("book.txt", "runs/", "models/")) else str(place / word.replace("models/smollm2", "runs/teacher"))
                 for word in line[1:]]
        quick = [*short(), "--threads", 1] if line[1] == "distill" else []
        cli_program.ok(*words, *quick)


def test_a_cache_changes_no_bit(place):
    for out, more in (("plain", []), ("first", ["--cache", place / "layers"]), ("second", ["--cache", place / "layers"])):
        distill(place, f"cached/{out}", *more, *short())
    kept = list((place / "layers").iterdir())
    assert len(kept) == 6  # steps; a micro-batch is a file
    weights = [(place / "cached" / out / "imitate/checkpoints/latest/model.safetensors").read_bytes() for out in ("plain", "first", "second")]
    assert weights[0] == weights[1] == weights[2]
    distill(place, "cached/bound", "--cache", place / "bounded", "--cache-gib", 1e-9, *short())
    assert not list((place / "bounded").iterdir())


def test_low_rank_updates_learn_and_go_on(place):
    distill(place, "low", *short())
    distill(place, "low", "--stage", "match", "--rank", 4, *short("train.lr=0.01"))
    before, after = ((place / "low" / stage / "checkpoints/latest/model.safetensors").read_bytes() for stage in ("imitate", "match"))
    assert len(before) == len(after) and before != after
    distill(place, "low", "--stage", "tune", "--rank", 4, *short())
    latest = place / "low/match/checkpoints/latest"
    shapes = safetensors_shapes(latest / "optimizer.safetensors")
    assert shapes["blocks.0.mixer.q.weight.low_rank_a"] == [4, 32] and "exp_avg.blocks.0.mixer.q.weight" not in shapes
    assert not any("low_rank" in name for name in safetensors_shapes(latest / "model.safetensors"))
    result = distill(place, "low", "--stage", "match", "--rank", 3, *short("train.steps=9"), run=cli_program.run)
    assert result.returncode != 0 and "began with" in result.stderr


def safetensors_shapes(file):
    with open(file, "rb") as content:
        header = json.loads(content.read(int.from_bytes(content.read(8), "little")))
    return {name: value["shape"] for name, value in header.items() if name != "__metadata__"}


@pytest.fixture(scope="module")
def corpus(place):
    data = place / "corpus"
    data.mkdir()
    for name in ("train.txt", "valid.txt"):
        (data / name).write_bytes(TEXT * 2)  # more than a window of 8,192 tokens
    return data


TINY = cli_program.settings("train.steps=2", "train.seq_len=64", "train.batch_tokens=128", "train.micro_batch=2", "train.eval_every=1",
                            "train.eval_tokens=512", "train.save_every=1", "train.log_every=1", "model.window=8", "model.sinks=2")


def redrawn(name, out):
    """Table and figure come from results.json alone."""
    drawn = {file: (out / name / file).read_text() for file in ("table.md", "figure.svg")}
    (out / name / "table.md").unlink()
    cli_program.ok("reproduce", name, "--redraw", "--out", out)
    assert {file: (out / name / file).read_text() for file in drawn} == drawn
    refused = cli_program.run("reproduce", name, "--out", out)
    assert refused.returncode == 2 and "--teacher" in refused.stderr
    return drawn["table.md"]


def test_reproduce_makes_every_student_and_draws_what_they_reached(place, corpus):
    out = place / "reproduced"
    command = ["reproduce", "conversion", "--teacher", place / "runs/teacher", "--data", corpus, "--out", out]
    assert "hybrid" in cli_program.ok(*command, "--dry-run") and not out.exists()
    cli_program.ok(*command, *TINY)
    results = json.loads((out / "conversion/results.json").read_text())
    plan = json.loads((cli_program.ROOT / "configs/conversion.json").read_text())
    assert len(results["students"]) == len(plan["students"])
    assert [row["context"] for row in results["teacher"]["texts"]] == [row["context"] for row in plan["texts"]]
    for student in results["students"]:
        for stage in student["stages"]:
            assert stage["texts"][0]["perplexity"] > 1 and len(stage["validations"]) >= 1
    again = cli_program.run(*command, *TINY)
    assert again.returncode == 0 and json.loads((out / "conversion/results.json").read_text()) == results
    table = redrawn("conversion", out)
    assert all(f"| {student['name']} |" in table for student in results["students"])

    # A student without its run keeps what is known of it, and where it was made.
    file, known = out / "conversion/results.json", results["students"][-1]
    file.write_text(json.dumps(results | {"students": [student | {"commit": "0123456789ab"} for student in results["students"]]}))
    shutil.rmtree(out / re.sub("[^A-Za-z0-9]+", "-", known["name"]))
    cli_program.ok(*command, "--only-write")
    written = json.loads(file.read_text())["students"]
    assert written[-1] == known | {"commit": "0123456789ab"} and written[:-1] == results["students"][:-1]
    assert f"At 0123456789ab on {known['cpu']}: {known['name']}." in (out / "conversion/table.md").read_text()


def test_reproduce_lets_every_memory_imitate_single_layers(place, corpus):
    out = place / "imitated"
    command = ["reproduce", "imitation", "--teacher", place / "runs/teacher", "--data", corpus, "--out", out]
    assert "Lattice-Dec: 5 runs" in cli_program.ok(*command, "--dry-run") and not out.exists()
    cli_program.ok(*command, *TINY)
    results = json.loads((out / "imitation/results.json").read_text())
    plan = json.loads((cli_program.ROOT / "configs/imitation.json").read_text())
    assert results["layers"] == [1]  # the last, where the teacher has fewer than the plan
    assert [memory["mixer"] for memory in results["memories"]] == [memory["mixer"] for memory in plan["memories"]]
    for memory in results["memories"]:
        assert [run["seed"] for run in memory["runs"]] == plan["seeds"]
        assert all(0 < error < 10 for run in memory["runs"] for _, error in run["curve"])
    table = redrawn("imitation", out)
    assert all(f"| {memory['name']} |" in table for memory in results["memories"])
    ends = [{run["seed"]: run["curve"][-1][1] for run in memory["runs"]} for memory in results["memories"]]
    for memory, other in zip(results["memories"][1:], ends[1:], strict=True):
        lower = sum(other[seed] > error for seed, error in ends[0].items())
        row = next(line for line in table.partition("## ")[2].splitlines() if line.startswith(f"| {memory['name']} |"))
        assert row.endswith(f"| {lower} of {len(plan['seeds'])} |")
