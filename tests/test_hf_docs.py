"""docs/python.md: what it shows about transformers runs, one block after the other, as a reader would run it."""

import re
import subprocess
import sys

import pytest
from cli_program import ROOT
from hf_models import checkpoint, written_by_cpp

SECTIONS = ("Models in transformers", "Fine-tuning with LoRA")


def test_the_blocks_run(tmp_path, monkeypatch):
    (tmp_path / "runs/book/checkpoints").mkdir(parents=True)
    (tmp_path / "runs/book/checkpoints/latest").symlink_to(checkpoint())
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/python.md").read_text()
    names = {"__name__": "example"}
    for title in SECTIONS:
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        blocks = re.findall(r"```python\n(.*?)```", section, re.S)
        assert blocks and all("assert" in block for block in blocks), title
        for block in blocks:
            exec(compile(block, f"docs/python.md: {title}", "exec"), names)
    assert written_by_cpp(tmp_path / "tuned", "It was", 4)


def test_the_harness_is_asked_for_by_name():
    pytest.importorskip("lattice")
    code = "import sys; sys.modules['lm_eval'] = None; import lattice.lm_eval; lattice.lm_eval.main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1 and "pip install 'lm_eval[hf]'" in result.stderr
