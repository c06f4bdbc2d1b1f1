"""Every block of Python in docs/python-runtime.md runs, in a directory with a trained model."""

import re

import pytest
from cli_program import ROOT, train, write_text

TEXT = (ROOT / "docs" / "python-runtime.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs")
    train(write_text(path / "text.txt"), path / "runs" / "book", "train.steps=30")
    return path


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: str(BLOCKS.index(code)))
def test_block_runs(folder, monkeypatch, code):
    assert "assert" in code, "an example that checks nothing cannot fail"
    monkeypatch.chdir(folder)
    exec(compile(code, "python-runtime.md", "exec"), {"__name__": "example"})
