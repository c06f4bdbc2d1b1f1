"""`./lattice torture ranks` with a few faults: hosts in network namespaces, cut off and with a bad line. Skipped where not permitted."""

import json
import subprocess
import sys

import pytest
from cli_program import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from torture.lan import why_not  # noqa: E402  (needs the path)


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "permitted")
def test_faults_of_hosts_and_network_lose_nothing(tmp_path):
    words = [sys.executable, ROOT / "tools" / "torture", "ranks", "--faults", "2", "--steps", "120", "--seed", "3", "--bound", "60",
             "--out", tmp_path / "result.json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["weights_equal"] and len(result["faults"]) == 2 and not result["broken"]


def test_the_committed_run_had_twenty_faults_and_lost_nothing():
    result = json.loads((ROOT / "results" / "ranks" / "faults.json").read_text())
    assert len(result["faults"]) >= 20 and result["weights_equal"] and not result["broken"]
    assert len({fault["fault"] for fault in result["faults"]}) == 5, "faults of every kind"
    assert max(fault.get("noticed_s", 0) for fault in result["faults"]) < result["bound_s"]
