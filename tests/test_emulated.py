"""CPUs without AVX2, emulated: lattice-run takes its portable code, or SSE4, and agrees with this machine (tools/emulated)."""

import shutil
import subprocess
import sys

import pytest
from cli_program import ROOT


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not installed")
@pytest.mark.parametrize("cpu, isas", [("Nehalem", "scalar"), ("Westmere", "scalar sse4")])
def test_a_cpu_without_avx2_agrees(cpu, isas):
    command = [sys.executable, ROOT / "tools" / "emulated", "--only", f"x86-64 {cpu}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and f"({isas}): agrees" in done.stdout, done.stdout + done.stderr
