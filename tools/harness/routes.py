"""The ways to an evaluation. Each gives, by task, the requests in order and the figures, in one shape."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.sets import TASKS

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"


@dataclass
class Outcome:
    requests: list[tuple[str, str]] = field(default_factory=list)  # context and continuation
    scores: list[tuple[float, bool]] = field(default_factory=list)  # log-likelihood, and whether it is the greedy one
    figures: dict[str, float] = field(default_factory=dict)
    hashes: list[str] = field(default_factory=list)  # of each item the harness's prompt and target hashes


def run(command, environment=None) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stderr[-3000:]}")
    return done.stdout


def by_cpp(model: Path, tasks_dir: Path, names: list[str], limit: int | None, folder: Path) -> dict[str, Outcome]:
    """`./lattice eval tasks`."""
    dump = folder / "cpp.jsonl"
    limited = ["--limit", limit] if limit else []
    report = json.loads(run([BIN / "lattice-run", "eval", "tasks", "--model", model, "--tasks-dir", tasks_dir, "--tasks", ",".join(names),
                             "--json", "--dump", dump, *limited]))
    outcomes = {name: Outcome(figures=report["results"][name]) for name in names}
    for line in dump.read_text().splitlines():
        item = json.loads(line)
        outcome = outcomes[item["task"]]
        count = len(item["loglikelihoods"])
        contexts = item["context"] if isinstance(item["context"], list) else [item["context"]] * count
        texts = item["continuations"] if len(item["continuations"]) == count else item["continuations"] * count
        outcome.requests += zip(contexts, texts)
        outcome.scores += zip(item["loglikelihoods"], map(bool, item["greedy"]))
    return outcomes


def by_harness(python: Path, words: list[str], tasks: Path, names: list[str], limit: int | None, folder: Path) -> dict[str, Outcome]:
    """The harness's command with some model. `words` begin with the module and its arguments about the model."""
    limited = ["--limit", limit] if limit else []
    run([python, "-m", *words, "--include_path", tasks, "--tasks", *(TASKS[name].local for name in names), "--output_path", folder,
         "--log_samples", *limited], _offline(folder))
    (report,) = folder.rglob("results_*.json")
    results = json.loads(report.read_text())["results"]
    return {name: _outcome(folder, TASKS[name].local, results) for name in names}


def prompts(python: Path, tasks: Path, name: str, folder: Path) -> Outcome:
    """What the harness asks about all items of a task, without scores."""
    asked = json.loads(run([python, Path(__file__).with_name("prompts.py"), tasks, TASKS[name].local], _offline(folder)))
    return Outcome(requests=[(context, text) for context, text in asked["requests"]], hashes=asked["hashes"])


def _offline(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
            "HF_HOME": str(folder / "cache"), "TOKENIZERS_PARALLELISM": "false"}


def _outcome(folder: Path, task: str, results: dict) -> Outcome:
    figures = {key.partition(",")[0]: value for key, value in results[task].items() if isinstance(value, float)}
    outcome = Outcome(figures=figures)
    (samples,) = folder.rglob(f"samples_{task}_*.jsonl")
    for sample in sorted(map(json.loads, samples.read_text().splitlines()), key=lambda sample: sample["doc_id"]):
        outcome.requests += [(request["arg_0"], request["arg_1"]) for request in sample["arguments"].values()]
        outcome.scores += [(float(answer[0][0]), str(answer[0][1]) == "True") for answer in sample["resps"]]
        outcome.hashes.append(sample["prompt_hash"] + sample["target_hash"])
    return outcome


def transformers_model(model: Path) -> list[str]:
    return ["lattice.lm_eval", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--batch_size", "8", "--device", "cpu"]


def served_model(url: str) -> list[str]:
    arguments = f"base_url={url}/v1/completions,model=served,tokenizer_backend=remote,max_length=65536,num_concurrent=1"
    return ["lm_eval", "--model", "local-completions", "--model_args", arguments, "--batch_size", "8"]


@contextlib.contextmanager
def served(model: Path) -> Iterator[str]:
    """The address of a server on loopback."""
    command = [BIN / "lattice-run", "serve", "--model", model, "--name", "served", "--port", "0"]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    try:
        found = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if found is None:
            raise RuntimeError("the server did not say its address")
        yield found[0]
    finally:
        process.terminate()
        process.communicate()
