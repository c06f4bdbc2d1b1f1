"""tools/harness: the tiny sets that ship, on three routes, where lm_eval, torch and transformers are installed together; and
whether its comparison would see a difference."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_program import ROOT, TINY, ok, settings, write_text

sys.path.insert(0, str(ROOT / "tools"))
from harness import agree, routes, sets  # noqa: E402

PYTHON = os.environ.get("LATTICE_CLIENTS_PYTHON", sys.executable)
SHIPPED = ROOT / "tests" / "data" / "tasks"


def outcome(**changes):
    whole = dict(requests=[("Q:", " a"), ("Q:", " b")], scores=[(-1.5, False), (-20.0, True)],
                 figures={"acc": 0.5, "acc_stderr": 0.25}, hashes=["x" * 128])
    return routes.Outcome(**whole | changes)


@pytest.mark.parametrize("changes,said", [
    (dict(requests=[("Q:", " a"), ("Q: ", " b")]), "request 1: "),
    (dict(requests=[("Q:", " a")]), "2 requests and 1"),
    (dict(scores=[(-1.5, True), (-20.0, True)]), "greedy False and True"),
    (dict(scores=[(-1.5, False), (-20.001, True)]), "log-likelihoods -20.0 and -20.001"),
    (dict(scores=[(-1.5, False), (float("nan"), True)]), "log-likelihoods -20.0 and nan"),
    (dict(figures={"acc": 0.5, "acc_stderr": 0.26}), "acc_stderr: 0.25 and 0.26"),
    (dict(figures={}), "no accuracies"),
])
def test_differences_are_found(changes, said):
    found, _ = agree.differences(outcome(), outcome(**changes))
    assert any(said in line for line in found), found


def test_what_agrees_agrees():
    found, worst = agree.differences(outcome(), outcome(scores=[(-1.5, False), (-20.0001, True)]))
    assert found == [] and worst == pytest.approx(5e-6)


def test_every_task_ships_some_items(tmp_path):
    """C++ reads them all, and the harness's task files would."""
    run = tmp_path / "run"
    ok("train", "--data", write_text(tmp_path / "text.txt"), "--out", run, "--threads", 1, *settings(*TINY, "train.steps=1"))
    ours = routes.by_cpp(run, SHIPPED, list(sets.TASKS), None, tmp_path)
    sets.write(tmp_path / "tasks", SHIPPED, Path("/harness"), list(sets.TASKS))
    for name, task in sets.TASKS.items():
        lines = (SHIPPED / task.items).read_text().splitlines()
        assert ours[name].figures["n"] == len(lines) and ours[name].figures["skipped"] == 0, name
        fields = json.loads((tmp_path / "tasks" / f"{task.local}.yaml").read_text())
        assert fields["include"] == f"/harness/{task.base}" and len(Path(fields["dataset_kwargs"]["data_files"][task.split]).read_text().splitlines()) == len(lines)


def test_stored_prompts_are_of_the_official_sets():
    pins = agree.stored()
    sizes = {"piqa": 1838, "hellaswag": 10042, "winogrande": 1267, "arc_easy": 2376, "arc_challenge": 1172, "commonsense_qa": 1221,
             "boolq": 3270, "lambada_openai": 5153}
    assert {name: pin["items"] for name, pin in pins["tasks"].items()} == sizes
    for pin in pins["tasks"].values():
        assert len(pin["blocks"]) == -(-pin["items"] // pins["block"]) and len(set(pin["blocks"])) == len(pin["blocks"])


@pytest.mark.skipif("LATTICE_TASKS_DIR" not in os.environ, reason="LATTICE_TASKS_DIR names no directory with the official sets")
def test_prompts_of_cpp_are_the_stored_ones(tmp_path):
    """Of one small set: `./lattice test --harness --pins check` does all."""
    run = tmp_path / "run"
    ok("train", "--data", write_text(tmp_path / "text.txt"), "--out", run, "--threads", 1, *settings(*TINY, "train.steps=1"))
    ours = routes.by_cpp(run, Path(os.environ["LATTICE_TASKS_DIR"]), ["winogrande", "arc_challenge"], None, tmp_path)
    for name, got in ours.items():
        assert agree.strings_of(got) == agree.stored()["tasks"][name]["strings"], name


def test_three_routes_agree():
    code = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in ('lm_eval', 'torch', 'transformers')))"
    if subprocess.run([PYTHON, "-c", code]).returncode:
        pytest.skip(f"{PYTHON} has not lm_eval, torch and transformers; see requirements-clients.txt and requirements-hf.txt")
    done = subprocess.run([sys.executable, ROOT / "tools" / "harness", "--python", PYTHON, "--tasks-dir", SHIPPED,
                           "--tasks", "hellaswag,winogrande,lambada_openai"], capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 0 differences") == 6
