"""`lattice mqar` and `lattice inspect RUN --text`: a sweep that resumes, examples, and the memory's page."""

import json
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest
from cli_program import PROGRAM, ok, run, train, write_text

TASK = ["--length", 32, "--pairs", 4, "--vocab", 64]
SMALL = [*TASK, "--d", "16,32", "--mixers", "lattice_dec,deltanet", "--lr", "1e-2", "--examples", 128,
         "--valid-examples", 64, "--batch", 32, "--epochs", 2, "--threads", 1]


def test_examples_obey_the_law():
    lines = ok("mqar", *TASK, "--show", 20, "--seed", 3).splitlines()
    assert len(lines) == 20 and ok("mqar", *TASK, "--show", 20, "--seed", 3).splitlines() == lines
    for line in map(json.loads, lines):
        tokens, labels = line["tokens"], line["labels"]
        value = dict(zip(tokens[0:8:2], tokens[1:8:2]))
        asked = {tokens[t]: label for t, label in enumerate(labels) if label >= 0}
        assert asked == value and len(value) == 4
        assert all(1 <= key < 32 <= answer < 64 for key, answer in value.items())


def test_a_sweep_does_nothing_twice(tmp_path):
    first = run("mqar", "--out", tmp_path, *SMALL)
    assert first.returncode == 0, first.stderr
    results = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").iterdir()}
    assert len(results) == 4 and "d 32:" in first.stdout
    again = run("mqar", "--out", tmp_path, *SMALL, "--json")
    assert "4 of them done already" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in results} == results
    assert len(json.loads(again.stdout)) == 4
    assert xml.parse(tmp_path / "mqar.svg").getroot().tag.endswith("svg")
    other = run("mqar", "--out", tmp_path, *SMALL, "--power", 0.5)
    assert other.returncode == 1 and "other settings" in other.stderr


def test_an_interrupted_point_goes_on_as_if_nothing_had_been(tmp_path):
    command = ["mqar", *TASK, "--d", 32, "--mixers", "lattice_dec", "--lr", "1e-2", "--examples", 512, "--valid-examples",
               64, "--batch", 32, "--epochs", 6, "--stop-at", 0, "--threads", 1]
    ok(*command, "--out", tmp_path / "whole")
    process = subprocess.Popen([PROGRAM, *map(str, [*command, "--out", tmp_path / "cut"])], stderr=subprocess.PIPE)
    while process.poll() is None and not list(tmp_path.glob("cut/unfinished/*/state.json")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    stopped = not list(tmp_path.glob("cut/results/*.json"))
    ok(*command, "--out", tmp_path / "cut")
    assert stopped and not list(tmp_path.glob("cut/unfinished/*"))
    whole, cut = (json.loads(next((tmp_path / name / "results").iterdir()).read_text()) for name in ("whole", "cut"))
    for figure in ("accuracy", "best_accuracy", "loss"):
        assert whole[figure] == cut[figure]


def test_a_memory_learns_to_recall(tmp_path):
    report = json.loads(ok("mqar", "--out", tmp_path, *TASK, "--d", 32, "--mixers", "lattice_dec", "--lr", "1e-2", "--no-noise",
                           "--examples", 16000, "--valid-examples", 100, "--batch", 32, "--epochs", 4, "--stop-at", 0.9, "--json"))
    assert next(iter(report.values()))["best_accuracy"] > 0.9  # any of the four values shown would be 0.25


@pytest.mark.parametrize("args,parts", [
    (["--out", "x", "--pairs", 100], ["100 pairs", "400"]),
    (["--out", "x", "--mixers", "deltane"], ["deltanet"]),
    ([], ["--out"]),
])
def test_wrong_use(args, parts):
    result = run("mqar", *args)
    assert result.returncode == 2
    for part in parts:
        assert part in result.stderr


def test_the_microscope(tmp_path):
    train(write_text(tmp_path / "text.txt"), tmp_path / "run")
    text = "the memory holds a fixed number of slots"
    table = ok("inspect", tmp_path / "run", "--text", text, "--html", tmp_path / "memory.html")
    assert "active slots" in table and "Most new written" in table
    report = json.loads(ok("inspect", tmp_path / "run", "--text", "-", "--json", stdin=text))
    assert "".join(report["tokens"]) == text and report["layer_count"] == 1
    head = report["layers"][0]["heads"][0]
    heads = re.findall(r"^ +(\d+) +(\d+) +\d\.", table, re.M)
    assert heads[0] == ("1", "1") and report["layers"][0]["layer"] == head["head"] == 0, "from 1 for people, from 0 in JSON"
    assert len(head["write"]) == len(text) and len(head["write"][0]) == report["slots"]
    assert head["snapshots"][-1]["token"] == len(text) - 1
    page = (tmp_path / "memory.html").read_text()
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "http" not in page and "src=" not in page
    assert run("inspect", "--config", "configs/tiny.toml", "--text", "x").returncode == 2


def test_the_microscope_says_what_is_not_defined(tmp_path):
    train(write_text(tmp_path / "text.txt"), tmp_path / "run", "model.mixer=deltanet")
    table = ok("inspect", tmp_path / "run", "--text", "the memory")
    assert "novelty and beta are not defined for deltanet" in table and "Most written" in table
    head = json.loads(ok("inspect", tmp_path / "run", "--text", "the memory", "--json"))["layers"][0]["heads"][0]
    assert head["novelty"] is None and head["beta"] is None and len(head["token_answer"]) == 10
