"""`lattice demo --quick`: the whole demo in a few seconds."""

import re

from cli_program import ROOT, ok


def test_the_quick_demo_shows_recall_training_and_a_sample(tmp_path):
    out = ok("demo", "--quick", "--out", tmp_path / "demo", cwd=tmp_path)
    assert re.search(r"pairs +lattice +deltanet +linear", out)
    assert re.search(r"an earlier key, a new value +\d+ % +\d+ % +\d+ % +0\.\d\d", out)
    assert 2 < float(re.search(r"Persuasion: ([\d.]+) bits per byte", out).group(1)) < 5
    assert 'continuing "Captain Wentworth"' in out
    run = tmp_path / "demo/lattice_dec"
    assert (run / "checkpoints/latest/model.safetensors").exists()
    # The next commands name the launcher from where the user stands, and the report that is there.
    commands = re.findall(r"^  (\S+) (generate|serve|inspect) .*$", out, re.M)
    assert [name for _, name in commands] == ["generate", "serve", "inspect"]
    for launcher, _ in commands:
        assert (tmp_path / launcher).resolve() == ROOT / "lattice"
    assert f"--model {run}" in out and str(run / "report.html") in out and (run / "report.html").exists()
