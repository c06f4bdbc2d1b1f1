"""A CPU without AVX2, emulated: lattice-run takes its portable code and agrees with this machine (tools/emulated)."""

import shutil
import subprocess
import sys

import pytest
from cli_program import ROOT


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not installed")
def test_a_cpu_without_avx2_agrees():
    command = [sys.executable, ROOT / "tools" / "emulated", "--only", "x86-64 Nehalem"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and "(scalar): agrees" in done.stdout, done.stdout + done.stderr
