"""`lattice demo --quick`: the whole demo in a few seconds."""

import re

from cli_program import ok


def test_the_quick_demo_shows_recall_training_and_a_sample(tmp_path):
    out = ok("demo", "--quick", "--out", tmp_path / "demo", cwd=tmp_path)
    assert re.search(r"pairs +lattice +deltanet +linear att\.", out)
    assert 2 < float(re.search(r"Persuasion: ([\d.]+) bits per byte", out).group(1)) < 5
    assert 'continuing "Captain Wentworth"' in out
    assert (tmp_path / "demo/lattice_dec/checkpoints/latest/model.safetensors").exists()
