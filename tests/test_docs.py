"""The documents: their Python runs, their links lead somewhere, the tests they name exist."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
OURS = ("recurrence.md", "errata.md")


def blocks(name):
    text = (DOCS / name).read_text()
    found = re.finditer(r"```python\n(.*?)```", text, re.S)
    return [(name, text[: m.start()].count("\n") + 1, m.group(1)) for m in found]


@pytest.mark.parametrize("name,line,code", blocks("recurrence.md"), ids=lambda x: str(x) if isinstance(x, int) else "")
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
