"""`lattice report --leaderboard`: derived from results/ alone, every cell leads to its runs, empty cells say so."""

import html
import json
import re
import shutil
import statistics
import xml.etree.ElementTree as xml

import pytest
from browser import CHROMIUM, Browser
from cli_program import ROOT, ok, run

BOARD = json.loads((ROOT / "configs" / "leaderboard.json").read_text())
RESULTS = ROOT / "results"
PAGE = (RESULTS / "leaderboard.html").read_text()


def rows(page):
    """The table as lists of cells, without its heading."""
    (table,) = re.findall(r'<table class="board">(.*?)</table>', page, re.S)
    return [re.findall(r"<td.*?>(.*?)</td>", line) for line in re.findall(r"<tr>(.*?)</tr>", table, re.S)][1:]


def test_the_committed_page_is_what_the_program_writes(tmp_path):
    out = ok("report", "--leaderboard", "--results", RESULTS, "--out", tmp_path / "board.html")
    assert out.strip() == str(tmp_path / "board.html")
    assert (tmp_path / "board.html").read_text() == PAGE
    assert (tmp_path / "board.svg").read_bytes() == (RESULTS / "leaderboard.svg").read_bytes()


def test_every_cell_is_the_median_of_runs_that_are_in_results():
    table = rows(PAGE)
    assert [cells[0] for cells in table] == [memory["name"] for memory in BOARD["memories"]]
    assert all(len(cells) == 1 + len(BOARD["columns"]) for cells in table)
    filled = 0
    for memory, cells in zip(BOARD["memories"], table, strict=True):
        for number, (column, cell) in enumerate(zip(BOARD["columns"], cells[1:], strict=True)):
            if cell == "no runs":
                continue
            filled += 1
            anchor = f"{memory['memory']}-{number}"
            shown = re.match(rf'<a href="#{anchor}">([^<]+)</a>', cell)[1]
            (origin,) = re.findall(rf'<tr id="{anchor}">(.*?)</tr>', PAGE, re.S)
            (experiment,) = re.findall(r'href="([\w-]+)/results\.json"', origin)
            ids = re.findall(r"<code>([0-9a-f]{12})</code>", origin)
            stored = json.loads((RESULTS / experiment / "results.json").read_text())
            found = [one for row in stored["rows"] for one in row["runs"] if one["id"] in ids]
            assert {one["id"] for one in found} == set(ids)
            assert html.escape(found[0]["command"], quote=False) in origin
            if column.get("format") == "percent":
                assert shown == f"{100 * statistics.median({one['id']: one['figures'] for one in found}[i][column['figure']] for i in ids):.1f} %"
    assert filled >= 15


def test_the_state_of_a_recurrent_memory_is_smaller_than_a_cache():
    state = {cells[0]: cells[-1] for cells in rows(PAGE)}
    assert "MiB" in state["Transformer++"] and "KiB" in state["Lattice-Dec"]


def test_without_results_every_cell_says_so(tmp_path):
    ok("report", "--leaderboard", "--results", tmp_path, "--out", tmp_path / "board.html")
    page = (tmp_path / "board.html").read_text()
    assert all(set(cells[1:]) == {"no runs"} for cells in rows(page))
    assert "./lattice reproduce confirm" in page
    assert xml.parse(tmp_path / "board.svg").getroot().tag.endswith("svg")


def test_what_results_say_cannot_become_markup(tmp_path):
    shutil.copytree(RESULTS / "books-context", tmp_path / "books-context")
    file = tmp_path / "books-context" / "results.json"
    file.write_text(file.read_text().replace("./lattice train --data", "<script>alert(1)</script> train --data"))
    ok("report", "--leaderboard", "--results", tmp_path)
    page = (tmp_path / "leaderboard.html").read_text()
    assert "<script" not in page and "&lt;script&gt;" in page


def test_wrong_use_and_damaged_results_are_refused(tmp_path):
    assert run("report", "--leaderboard", "--results", tmp_path / "none").returncode == 2
    assert run("report", "--leaderboard", tmp_path).returncode == 2
    (tmp_path / "confirm2").mkdir()
    (tmp_path / "confirm2" / "results.json").write_text("{")
    damaged = run("report", "--leaderboard", "--results", tmp_path)
    assert damaged.returncode == 1 and "results.json" in damaged.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")
def test_the_page_fits_a_phone():
    browser = Browser()
    try:
        for width in (390, 1280):
            browser.show(width, 800)
            browser.open(f"file://{RESULTS / 'leaderboard.html'}")
            assert browser.run("document.documentElement.scrollWidth <= window.innerWidth"), width
    finally:
        browser.close()
