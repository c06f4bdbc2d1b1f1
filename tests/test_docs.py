"""The documents: their Python runs, their links lead somewhere, the tests they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
OURS = ("recurrence.md", "errata.md", "python.md")


def blocks(name):
    """(name, line, code) of every example; those behind this title build on each other: test_hf_docs.py."""
    text = (DOCS / name).read_text().partition("## Models in transformers")[0]
    found = re.finditer(r"```python\n(.*?)```", text, re.S)
    return [(name, text[: m.start()].count("\n") + 1, m.group(1)) for m in found]


@pytest.mark.parametrize("name,line,code", blocks("recurrence.md") + blocks("python.md"), ids=lambda x: str(x) if isinstance(x, int) else "")
def test_example_runs(name, line, code):
    assert "assert" in code, "an example that checks nothing cannot fail"
    exec(compile("\n" * line + code, str(DOCS / name), "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", OURS)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)", (DOCS / name).read_text()):
        assert "://" in target or (DOCS / target).exists(), f"{name} links to {target}"


def test_errata_name_tests_that_exist():
    named = set(re.findall(r"`(test_\w+)\.py::(test_\w+)`", (DOCS / "errata.md").read_text()))
    assert len(named) >= 10
    for module, test in named:
        source = (Path(__file__).parent / f"{module}.py").read_text()
        assert f"def {test}(" in source, f"{module}.py has no {test}"


def test_readme_names_the_paper_and_leads_somewhere():
    text = (ROOT / "README.md").read_text()
    opening = text.partition("## Use it")[0]
    for part in ("Lattice: Learning to Efficiently Compress the Memory", "https://arxiv.org/abs/2504.05646", "not yet run on hardware",
                 "Mahdi Karami, Razvan Pascanu, Vahab Mirrokni", "## When to use it, and when not", "Linux on x86-64"):
        assert part in opening, part
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert "://" in target or (ROOT / target).exists(), f"README.md links to {target}"


def test_citation_names_the_paper_and_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    version = re.search(r"^project\(lattice VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)
    assert f"\nversion: {version}\n" in text and "arXiv:2504.05646" in text
    assert re.findall(r"family-names: (\w+)", text) == ["Karami", "Pascanu", "Mirrokni"]


def test_requirements_name_one_torch():
    """What the launcher installs, what `pip install .` builds with, and what the package then asks for."""
    pin = re.search(r"^torch==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE).group(1)
    assert re.findall(r'"torch==([^"]+)"', (ROOT / "pyproject.toml").read_text()) == [pin, pin]
