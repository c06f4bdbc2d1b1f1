"""`lattice eval`: tasks and perplexity from the command line, with files and models made here."""

import json
import xml.etree.ElementTree as xml

import pytest
from cli_program import ok, run, train, write_text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    directory = tmp_path_factory.mktemp("eval")
    train(write_text(directory / "text.txt"), directory / "run")
    return directory / "run"


@pytest.fixture
def tasks(tmp_path):
    def put(name, *lines):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    put("piqa_val.jsonl",
        {"goal": "Keep tea hot", "sol1": "use a cosy", "sol2": "use the café's ice", "label": 0},
        {"goal": "Open a jar", "sol1": "sing to it", "sol2": "turn the lid", "label": 1})
    put("boolq_dev.jsonl", {"question": "is water wet", "answer": True, "passage": "Water is wet."})
    put("lambada_openai_test.jsonl", {"text": "the memory holds a fixed number of slots"})
    return tmp_path


def eval_tasks(model, tasks, *args):
    return json.loads(ok("eval", "tasks", "--model", model, "--tasks-dir", tasks, "--json", *args))


def test_results_and_dump(model, tasks, tmp_path):
    report = eval_tasks(model, tasks, "--tasks", "piqa,boolq,lambada_openai", "--dump", tmp_path / "dump.jsonl")
    piqa = report["results"]["piqa"]
    assert piqa["n"] == 2 and piqa["skipped"] == 0 and {"acc", "acc_stderr", "acc_norm"} <= piqa.keys()
    assert report["results"]["lambada_openai"]["perplexity"] > 1
    assert report["add_bos"] is False
    dump = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text().splitlines()]
    assert [line["task"] for line in dump] == ["piqa", "piqa", "boolq", "lambada_openai"]
    assert dump[0]["context"] == "Question: Keep tea hot\nAnswer:"
    assert dump[0]["continuations"] == [" use a cosy", " use the café's ice"]
    best = [line["loglikelihoods"].index(max(line["loglikelihoods"])) == line["gold"] for line in dump[:2]]
    assert piqa["acc"] == sum(best) / 2


def test_sharing_changes_no_figure(model, tasks, tmp_path):
    dumps = []
    for name, args in (("a", []), ("b", ["--no-share", "--batch", 1, "--threads", 1])):
        eval_tasks(model, tasks, "--tasks", "piqa,boolq", "--dump", tmp_path / name, *args)
        dumps.append((tmp_path / name).read_text())
    assert dumps[0] == dumps[1]


def test_one_bad_item_and_a_missing_file_lose_nothing_else(model, tasks):
    with open(tasks / "piqa_val.jsonl", "a") as file:
        file.write('{"goal": "g", "sol1": "a", "label": 0}\n')
    report = run("eval", "tasks", "--model", model, "--tasks-dir", tasks, "--tasks", "piqa,hellaswag", "--json")
    assert report.returncode == 1
    assert "piqa_val.jsonl:3" in report.stderr and '"sol2"' in report.stderr
    assert "hellaswag_val.jsonl" in report.stderr
    piqa = json.loads(report.stdout)["results"]["piqa"]
    assert piqa["n"] == 2 and piqa["skipped"] == 1


def test_wrong_use(model, tasks):
    result = run("eval", "tasks", "--model", model, "--tasks-dir", tasks, "--tasks", "pica")
    assert result.returncode == 2 and 'did you mean "piqa"' in result.stderr
    (tasks / "piqa_val.jsonl").write_text("")
    result = run("eval", "tasks", "--model", model, "--tasks-dir", tasks, "--tasks", "piqa")
    assert result.returncode == 1 and "is empty" in result.stderr


def test_a_checkpoint_without_tokenizer(model, tasks, tmp_path):
    (tmp_path / "bare").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "bare" / name).write_bytes((model / "checkpoints/latest" / name).read_bytes())
    command = ["eval", "tasks", "--model", tmp_path / "bare", "--tasks-dir", tasks, "--tasks", "boolq"]
    result = run(*command)
    assert result.returncode == 1 and "has no tokenizer" in result.stderr and "--tokenizer" in result.stderr
    ok(*command, "--tokenizer", "bytes")


def test_perplexity_by_context(model, tmp_path):
    text = write_text(tmp_path / "held.txt")
    command = ["eval", "ppl", "--model", model, "--data", text, "--context", "1024,32,128"]
    report = json.loads(ok(*command, "--json", "--svg", tmp_path / "ppl.svg"))
    contexts = [result["context"] for result in report["results"]]
    assert contexts == [32, 128, 1024]
    assert len({result["tokens"] for result in report["results"]}) == 1
    for result in report["results"]:
        assert result["curve"][-1]["to"] == result["context"]
        total = sum(point["loss"] * point["tokens"] for point in result["curve"])
        assert total == pytest.approx(result["loss"] * result["tokens"])
    assert xml.parse(tmp_path / "ppl.svg").getroot().tag.endswith("svg")
    assert "perplexity" in ok(*command)


def test_perplexity_equals_that_of_training(model, tmp_path):
    # The trainer validates on windows of 64 tokens of the last 5 % of the text.
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    valid = [line for line in lines if "valid_loss" in line][-1]
    text = (model.parent / "text.txt").read_bytes()
    (tmp_path / "held.txt").write_bytes(text[-valid["valid_tokens"] - 200:])
    report = json.loads(ok("eval", "ppl", "--model", model, "--data", tmp_path / "held.txt", "--context", "64", "--json"))
    assert report["results"][0]["loss"] == pytest.approx(valid["valid_loss"], rel=0.05)


def test_a_carried_state_and_a_short_text(model, tmp_path):
    text = write_text(tmp_path / "held.txt", lines=20)
    size = text.stat().st_size
    carried = json.loads(ok("eval", "ppl", "--model", model, "--data", text, "--context", "64", "--state", "carried",
                            "--json"))
    assert carried["results"][0]["context"] == size - 1
    result = run("eval", "ppl", "--model", model, "--data", text, "--context", "64,100000")
    assert result.returncode == 0 and "too few for a context of 100000" in result.stderr
    assert run("eval", "ppl", "--model", model, "--data", text, "--context", "100000").returncode == 1
    assert run("eval", "ppl", "--model", model, "--data", text, "--context", "0").returncode == 2
