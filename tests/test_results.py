"""What is in results/: figures are what the program draws, tables of docs/results.md are those of the results."""

import importlib.util
import json
import re
import xml.etree.ElementTree as xml

import pytest
from cli_program import ROOT, ok

CONFIGS = ROOT / "configs" / "reproduce"
PAPER = json.loads((CONFIGS / "paper.json").read_text())
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


# Experiments with a teacher have no values in the paper.
@pytest.mark.parametrize("name", [name for name in COMMITTED if (CONFIGS / f"{name}.json").exists()])
def test_committed_results_are_of_the_papers_values(name):
    results = json.loads((ROOT / "results" / name / "results.json").read_text())
    for row in results["rows"]:
        assert len({one["id"] for one in row["runs"]}) == len(row["runs"])
        paper = PAPER.get(results["experiment"], {}).get(row["variant"], {}).values()
        assert row["paper"] is None or row["paper"] in paper


def measured_without_training(folder, name):
    """The program results/FOLDER/NAME.py as a module, and the rows of its table NAME.md."""
    path = ROOT / "results" / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, [cells(line) for line in path.with_suffix(".md").read_text().splitlines() if line.startswith("|")]


def test_the_capacity_of_memories_is_that_of_its_table():
    capacity, rows = measured_without_training("mqar", "capacity")
    (row,) = [row for row in rows if row[0].startswith("32 x 32, 64,")]
    best = [re.match(r"([\d.]+) \(([\d.]+), ([\d.]+)\)", cell).groups() for cell in row[1:]]
    assert len(best) == len(capacity.MEMORIES)
    for (memory, kind), (percent, gate, length) in zip(capacity.MEMORIES, best, strict=True):
        found = 100 * capacity.accuracy(memory, kind, (32, 32, 64, 256), float(gate), float(length))
        assert abs(found - float(percent)) < 0.5, memory


def test_the_growth_of_differences_is_that_of_its_table():
    stability, rows = measured_without_training("select", "stability")
    shown = {(memory, float(spread)): columns for memory, spread, *columns in rows[2:]}
    for memory in stability.MEMORIES:
        median, largest = map(float, shown[memory, 0.1][stability.LENGTHS.index(8)].split(", "))
        found = stability.growth(memory, 0.1, 8)
        assert found.median().item() == pytest.approx(median, rel=0.1) and found.max().item() == pytest.approx(largest, rel=0.1)


def test_documented_growth_is_that_of_its_table():
    (shown,) = marked_tables("stability").values()
    stability, rows = measured_without_training("select", "stability")
    heading, _, *lines = map(cells, shown.splitlines())
    columns = [rows[0].index(name) for name in heading[1:]]
    largest = [[row[0], *(row[column].split(", ")[1] for column in columns)] for row in rows[2:] if row[1] == "0.1"]
    assert lines == largest


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
    _, stored = measured_without_training("mqar", "capacity")
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
