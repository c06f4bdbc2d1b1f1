"""`lattice reproduce`: every experiment in miniature, going on after a kill, the paper's values, figures that render."""

import csv
import importlib.util
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

EXPERIMENTS = ["ablation", "books-context", "mqar", "pile-context", "scaling", "slots", "throughput", "zero-shot", "select", "confirm",
               "recall", "decode", "hybrids"]
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


COMMITTED = sorted(file.parent.name for file in (ROOT / "results").glob("*/results.json"))


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_figures_are_what_the_program_draws(tmp_path, name):
    committed = ROOT / "results" / name
    (tmp_path / name).mkdir()
    (tmp_path / name / "results.json").write_bytes((committed / "results.json").read_bytes())
    ok("reproduce", name, "--scale", "laptop", "--redraw", "--out", tmp_path)
    drawn = {file.name for file in (tmp_path / name).iterdir()}
    assert {"table.md", "figure.svg"} <= drawn
    for file in drawn:
        assert (tmp_path / name / file).read_bytes() == (committed / file).read_bytes(), file


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


def classes(svg, tag):
    return [node.get("class", "").split() for node in svg.iter() if node.tag.endswith(tag)]


def test_the_ablation_is_coloured_by_memory():
    svg = xml.parse(ROOT / "results" / "ablation" / "figure.svg").getroot()
    variants = json.loads((CONFIGS / "ablation.json").read_text())["variants"]
    mixers = [variant["set"][0] for variant in variants]
    here = [names[0] for names in classes(svg, "circle")][:len(mixers) - 1]  # one is off the scale, an arrow
    del mixers[[variant["name"] for variant in variants].index("C=4 linear2 per token")]
    assert len(set(zip(mixers, here, strict=True))) == len(set(mixers)) == len(set(here)) == 4


def test_the_context_figure_shows_differences():
    svg = xml.parse(ROOT / "results" / "books-context" / "figure.svg").getroot()
    assert not [names for names in classes(svg, "path") if "line" in names]
    assert sum("ring" in names for names in classes(svg, "circle")) >= 10, "the paper's, on the same axis"
    words = [node.text or "" for node in svg.iter()]
    assert sum(re.fullmatch(r"[+-]?\d+\.\d %", word) is not None for word in words) == 12


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


def test_what_is_confirmed_was_selected_before(everything):
    """The rates and the best mean of the family, on other seeds; nothing is tuned a second time."""
    first, second = (json.loads((everything[0] / name / "results.json").read_text()) for name in ("select", "confirm"))
    family = [variant["name"] for variant in json.loads((CONFIGS / "select.json").read_text())["variants"] if "family" in variant]
    means = {row["variant"]: sum(one["value"] for one in row["runs"]) / len(row["runs"]) for row in first["rows"]}
    winner = min((name for name in family if name in means), key=means.get)
    rates = {tuned["group"]: tuned["best"] for tuned in first["tuning"]}
    assert "tuning" not in second
    for row in second["rows"]:
        own = {"Lattice-Dec": "lattice", "Lattice-Dec, present default": "lattice", "+ orthogonal recurrence": "not normalized"}
        assert row["rate"] == rates[own.get(row["variant"], row["variant"])]
        chosen = row["variant"] in ("Lattice-Dec", "+ orthogonal recurrence")
        assert row.get("chosen") == (winner if chosen else None)
        assert ("state_init=aligned" in row["runs"][0]["command"]) == (chosen and "aligned" in winner)
    seeds = [{one["seed"] for row in results["rows"] for one in row["runs"]} for results in (first, second)]
    assert not seeds[0] & seeds[1]


def test_nothing_is_confirmed_before_it_was_selected(tmp_path):
    early = run("reproduce", "confirm", "--scale", "miniature", "--out", tmp_path)
    assert early.returncode == 0 and "runs wait for what select decides" in early.stderr
    assert not (tmp_path / "runs").exists() and not (tmp_path / "confirm").exists()


def test_finished_runs_are_all_that_a_fresh_clone_needs(everything, tmp_path):
    for folder in ("runs", "tokenizers"):
        shutil.copytree(everything[0] / folder, tmp_path / folder)
    again = run("reproduce", "select", "confirm", "--scale", "miniature", "--out", tmp_path)
    assert again.returncode == 0 and " done in " not in again.stderr
    for name in ("select", "confirm"):
        assert (tmp_path / name / "results.json").read_bytes() == (everything[0] / name / "results.json").read_bytes()


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


# Experiments with a teacher have no values in the paper.
@pytest.mark.parametrize("name", [name for name in COMMITTED if (CONFIGS / f"{name}.json").exists()])
def test_committed_results_are_of_the_papers_values(name):
    results = json.loads((ROOT / "results" / name / "results.json").read_text())
    for row in results["rows"]:
        assert len({one["id"] for one in row["runs"]}) == len(row["runs"])
        paper = PAPER.get(results["experiment"], {}).get(row["variant"], {}).values()
        assert row["paper"] is None or row["paper"] in paper


def test_the_capacity_of_memories_is_that_of_its_table():
    folder = ROOT / "results" / "mqar"
    spec = importlib.util.spec_from_file_location("capacity", folder / "capacity.py")
    capacity = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(capacity)
    rows = [line.split(" | ") for line in (folder / "capacity.md").read_text().splitlines() if line.startswith("| 32 x 32, 64,")]
    cells = [re.match(r"([\d.]+) \(([\d.]+), ([\d.]+)\)", cell).groups() for cell in rows[0][1:]]
    assert len(cells) == len(capacity.MEMORIES)
    for (memory, kind), (percent, gate, length) in zip(capacity.MEMORIES, cells, strict=True):
        found = 100 * capacity.accuracy(memory, kind, (32, 32, 64, 256), float(gate), float(length))
        assert abs(found - float(percent)) < 0.5, memory


def marked_tables(marker):
    """The tables of docs/results.md behind the comment `<!-- MARKER of results/NAME -->`, by name."""
    document = (ROOT / "docs" / "results.md").read_text()
    return dict(re.findall(rf"<!-- {marker} of results/([\w-]+) -->\n((?:\|.*\n)+)", document))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_documented_recall_is_that_of_the_results():
    (shown,) = marked_tables("seeds").values()
    results = json.loads((ROOT / "results" / "mqar" / "results.json").read_text())
    rows = {(row["variant"], row["point"]): row for row in results["rows"]}
    lines = [cells(line) for line in shown.splitlines()[2:]]
    assert len(lines) == 3
    for name, *columns in lines:
        for point, median, seeds in (("L = 64, 16 pairs, d = 16", *columns[:2]), ("L = 96, 24 pairs, d = 16", *columns[2:])):
            row = rows[f"{name}, aligned start", point]
            assert median == f"{100 * row['median']:.1f}"
            assert seeds == " / ".join(f"{100 * one['value']:.1f}" for one in row["runs"])


def test_documented_capacity_is_that_of_its_table():
    (shown,) = marked_tables("capacity").values()
    names = {"16 slots x 16, 16 pairs": "16 x 16, 16,", "32 slots x 32, 64 pairs": "32 x 32, 64,", "64 slots x 64, 256 pairs": "64 x 64, 256,"}
    stored = [cells(line) for line in (ROOT / "results" / "mqar" / "capacity.md").read_text().splitlines() if line.startswith("|")]
    heading = stored[0]
    wanted = [heading.index(next(name for name in heading[1:] if name.startswith(start))) for start in
              ("DeltaNet", "TTT, random", "Lattice-Dec, random", "Lattice-Dec, aligned")]
    for line in shown.splitlines()[2:]:
        name, *values = cells(line)
        (row,) = [row for row in stored if row[0].startswith(names[name])]
        assert values == [row[column].split()[0] for column in wanted]


def test_every_documented_table_is_derived_or_defines():
    """A table of figures has a marker, by which a test derives it; others say what an experiment is."""
    document = (ROOT / "docs" / "results.md").read_text()
    free = [match[1] for match in re.finditer(r"(?<!-->)\n(\|.*)\n\|---", document)]
    assert free == ["| experiment | paper | measured here |", "| | text | seeds | tokens a run | memories | runs |"]


def test_documented_claims_are_those_of_the_results():
    def tables(text, heading):
        return re.findall(heading + r"\n+((?:\|.*\n)+)", text)

    document = (ROOT / "docs" / "results.md").read_text()
    named = re.findall(r"<!-- claims of results/([\w-]+) -->", document)
    assert len(named) >= 4
    for name in named:
        (stored,) = tables((ROOT / "results" / name / "table.md").read_text(), "## Claims")
        (shown,) = tables(document, f"<!-- claims of results/{name} -->")
        assert shown == stored, f"docs/results.md shows other claims of {name} than results/{name}/table.md"
        assert set(re.findall(r"^\| [^|]+ \| ([^|]+) \|", stored, re.M)) <= {"here", "---:", "holds", "fails", "not decided"}
