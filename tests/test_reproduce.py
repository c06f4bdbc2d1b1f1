"""`lattice reproduce`: every experiment in miniature, going on after a kill, the paper's values, figures that render."""

import csv
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest
from cli_program import PROGRAM, ROOT, ok, run

EXPERIMENTS = ["ablation", "books-context", "mqar", "pile-context", "scaling", "slots", "throughput", "zero-shot", "select", "select2",
               "confirm", "confirm2", "recall", "decode", "hybrids"]
CONFIGS = ROOT / "configs" / "reproduce"
PAPER = json.loads((CONFIGS / "paper.json").read_text())


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tasks")
    choices = {"label": ["A", "B", "C", "D", "E"], "text": ["one", "two", "three", "four", "five"]}
    four = {key: words[:4] for key, words in choices.items()}

    def put(name, line):
        (directory / name).write_text(json.dumps(line) + "\n")

    put("piqa_val.jsonl", {"goal": "Keep tea hot", "sol1": "use a cosy", "sol2": "use ice", "label": 0})
    put("hellaswag_val.jsonl", {"ind": 1, "activity_label": "Tea", "ctx_a": "She boils.", "ctx_b": "then she", "label": 1,
                                "endings": ["leaves", "pours", "sings", "sleeps"], "source_id": "x", "split_type": "indomain"})
    put("winogrande_xl_dev.jsonl", {"sentence": "The cup broke because _ was thin.", "option1": "the cup",
                                    "option2": "the tea", "answer": "1"})
    for name in ("arc_easy_test.jsonl", "arc_challenge_test.jsonl"):
        put(name, {"id": "a", "question": "What holds tea?", "choices": four, "answerKey": "B"})
    put("commonsense_qa_dev.jsonl", {"id": "b", "question": "Where is tea?", "choices": choices, "answerKey": "C"})
    put("boolq_dev.jsonl", {"question": "is tea wet", "answer": True, "passage": "Tea is wet."})
    return directory


def reproduce(name, out, *args):
    return ok("reproduce", name, "--scale", "miniature", "--out", out, *args)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def everything(tmp_path_factory, tasks):
    out = tmp_path_factory.mktemp("reproduce")
    seconds = {}
    for name in EXPERIMENTS:
        began = processor_seconds()
        reproduce(name, out, "--tasks-dir", tasks)
        seconds[name] = processor_seconds() - began
    return out, seconds


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_miniature_yields_valid_files_within_a_minute_of_the_processor(everything, name):
    out, seconds = everything
    assert seconds[name] < 60
    results = json.loads((out / name / "results.json").read_text())
    assert results["experiment"] == name and results["runs"] == results["wanted"] > 0
    assert str(ROOT) not in (out / name / "results.json").read_text()
    for row in results["rows"]:
        assert row["paper"] == paper_value(name, row)
        for one in row["runs"]:
            stored = json.loads((out / "runs" / f"{one['id']}.json").read_text())
            assert re.fullmatch("[0-9a-f]{12}", one["id"]) and one["command"].startswith("./lattice ")
            assert one["commit"] and one["cpu"] and stored["figures"][row["figure"]] == one["value"]
        values = sorted(one["value"] for one in row["runs"])
        assert row["low"] == values[0] and row["high"] == values[-1] and values[0] <= row["median"] <= values[-1]
    table, page = (out / name / "table.md").read_text(), (out / name / "report.html").read_text()
    assert results["rows"][0]["variant"] in table and results["command"] in table
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n") and results["rows"][0]["runs"][0]["id"] in page
    assert not list((out / "work").glob("[0-9a-f]*"))


def paper_value(name, row):
    scale = json.loads((CONFIGS / f"{name}.json").read_text())["scales"]["miniature"]
    labels = {point["label"]: point.get("paper", point["label"]) for point in scale.get("points", [{"label": ""}])}
    return PAPER.get(name, {}).get(row["variant"], {}).get(labels[row["point"]])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_figures_draw_every_row(everything, name):
    svg = xml.parse(everything[0] / name / "figure.svg").getroot()
    results = json.loads((everything[0] / name / "results.json").read_text())
    shapes = [node for node in svg.iter() if node.tag.endswith("circle")]
    assert svg.tag.endswith("svg") and len(shapes) >= len({row["variant"] for row in results["rows"]})
    words = " ".join(node.text or "" for node in svg.iter())
    assert all(row["variant"] in words for row in results["rows"]) and "nan" not in words


FILES = ("results.json", "table.md", "figure.svg", "report.html")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_results_are_drawn_again_without_their_runs(everything, tmp_path, name):
    made = everything[0] / name
    (tmp_path / name).mkdir()
    (tmp_path / name / "results.json").write_bytes((made / "results.json").read_bytes())
    ok("reproduce", name, "--scale", "miniature", "--redraw", "--out", tmp_path)
    for file in FILES:
        assert (tmp_path / name / file).read_bytes() == (made / file).read_bytes(), file


def test_redrawing_needs_results_of_the_same_experiment(everything, tmp_path):
    missing = run("reproduce", "slots", "--scale", "miniature", "--redraw", "--out", tmp_path)
    assert missing.returncode == 1 and "results.json" in missing.stderr
    (tmp_path / "slots").mkdir()
    (tmp_path / "slots" / "results.json").write_bytes((everything[0] / "ablation" / "results.json").read_bytes())
    other = run("reproduce", "slots", "--scale", "miniature", "--redraw", "--out", tmp_path)
    assert other.returncode == 1 and "ablation" in other.stderr and "slots" in other.stderr


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_pages_have_neither_labels_of_latex_nor_backticks(everything, name):
    for page in (everything[0] / name / "report.html", everything[0] / name / "figure.svg"):
        assert not re.search(r"`|(tab|fig|sec):\w", page.read_text())


def test_all_variants_of_a_seed_see_the_same_data_and_tokens(everything):
    rows = json.loads((everything[0] / "ablation" / "results.json").read_text())["rows"]
    assert len({(row["tokens"], row["corpus"]) for row in rows}) == 1
    assert max(row["parameters"] for row in rows) <= 1.01 * min(row["parameters"] for row in rows)
    seeds = {re.search(r"train.seed=(\d+)", one["command"])[1] for row in rows for one in row["runs"]}
    assert seeds == {"0"}


def test_nothing_is_made_twice(everything, tasks):
    before = {path: path.stat().st_mtime_ns for path in (everything[0] / "runs").iterdir()}
    again = run("reproduce", "ablation", "slots", "--scale", "miniature", "--out", everything[0])
    assert again.returncode == 0 and " done in " not in again.stderr
    assert {path: path.stat().st_mtime_ns for path in (everything[0] / "runs").iterdir()} == before


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_reproduction_goes_on_to_the_same_figures(everything, tmp_path, how):
    command = [PROGRAM, "reproduce", "books-context", "--scale", "miniature", "--out", tmp_path, "--jobs", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    while process.poll() is None and not list(tmp_path.glob("runs/*.json")):
        time.sleep(0.01)
    process.send_signal(how)
    code = process.wait(60)
    assert code == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    wait_for_children(process.pid)
    done = len(list(tmp_path.glob("runs/*.json")))
    assert 1 <= done < 4
    reproduce("books-context", tmp_path)
    results = json.loads((tmp_path / "books-context" / "results.json").read_text())
    assert results["runs"] == results["wanted"] == len(list(tmp_path.glob("runs/*.json"))) == 4
    reference = json.loads((everything[0] / "books-context" / "results.json").read_text())
    assert [row["median"] for row in results["rows"]] == [row["median"] for row in reference["rows"]]


def wait_for_children(group):
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError("a child outlived its parent")


def test_more_seeds_make_the_missing_runs_only(everything, tmp_path):
    shutil.copytree(CONFIGS, tmp_path / "configs" / "reproduce")
    file = tmp_path / "configs" / "reproduce" / "books-context.json"
    experiment = json.loads(file.read_text())
    assert experiment["scales"]["miniature"]["seeds"] == [0]
    experiment["scales"]["miniature"]["seeds"] = [0, 1]
    file.write_text(json.dumps(experiment))
    command = [PROGRAM, "reproduce", "books-context", "--scale", "miniature", "--dry-run", "--out", everything[0]]
    plan = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r" 4 runs, 2 done", plan)) == 2 and re.search(r"missing: 4 runs, .* about ", plan)


def test_the_plan_names_runs_and_time(tmp_path):
    plan = ok("reproduce", "ablation", "--scale", "laptop", "--dry-run", "--out", tmp_path / "none")
    assert re.search(r"missing: 60 runs, .* about ", plan) and "to be tuned" in plan and "448,776 to 449,816" in plan
    assert not (tmp_path / "none" / "runs").exists()


def test_the_papers_values_are_those_of_its_source():
    with open(ROOT / "tests" / "data" / "reproduce" / "paper_values.csv") as file:
        source = {(line["experiment"], line["variant"], line["point"]): float(line["value"]) for line in csv.DictReader(file)}
    ours = {(name, variant, point): value for name, variants in PAPER.items() for variant, points in variants.items()
            for point, value in points.items()}
    assert ours == source and len(ours) == 270


@pytest.mark.parametrize("scale", ["laptop", "paper", "miniature"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_name_what_the_paper_has(name, scale):
    experiment = json.loads((CONFIGS / f"{name}.json").read_text())
    variants = {variant["name"] for variant in experiment["variants"]}
    assert set(experiment["scales"][scale].get("variants", [])) <= variants
    assert {place[0] for claim in experiment["claims"] for place in (claim["better"], claim["than"])} <= variants
    assert len(experiment["scales"][scale]["seeds"]) >= 3 or scale == "miniature" or name == "throughput"
    if name in PAPER and scale == "paper":
        labels = {point.get("paper", point["label"]) for point in experiment["scales"]["paper"].get("points", [{"label": ""}])}
        assert all(labels & points.keys() for points in PAPER[name].values())


def test_wrong_use_is_refused(tmp_path):
    unknown = run("reproduce", "ablatoin", "--out", tmp_path)
    assert unknown.returncode == 2 and "ablation" in unknown.stderr
    missing = run("reproduce", "ablation", "--scale", "miniature", "--data", tmp_path, "--out", tmp_path / "out")
    assert missing.returncode == 1 and "edu_train.txt" in missing.stderr
    tasks = run("reproduce", "zero-shot", "--scale", "miniature", "--out", tmp_path / "out")
    assert tasks.returncode == 1 and "--tasks-dir" in tasks.stderr
