"""The golden vectors again under every instruction set this machine has; LATTICE_ISA is read once per process."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NEEDS = {"scalar": (), "sse4": ("sse4_2", "aes", "pclmulqdq"), "avx2": ("avx2", "fma"), "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl")}
if platform.machine() == "aarch64":
    NEEDS = {"neon": (), "neon-dot": ("asimddp",), "neon-bf16": ("asimddp", "bf16", "i8mm")}


def cpu_flags():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return set(next((line.split(":")[1].split() for line in lines if line.startswith(("flags", "Features"))), ()))


def python(*arguments, isa):
    return subprocess.run([sys.executable, *arguments], env=dict(os.environ, LATTICE_ISA=isa), cwd=HERE,
                          capture_output=True, text=True)


@pytest.mark.parametrize("isa", NEEDS)
def test_golden_vectors(isa):
    missing = set(NEEDS[isa]) - cpu_flags()
    if missing:
        pytest.skip(f"this CPU has no {', '.join(sorted(missing))}")
    done = python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_scan_golden.py", "test_rules_golden.py",
                  isa=isa)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_unknown_isa_is_refused():
    script = ("import sys; sys.path[:0] = ['.', '../python']\n"
              "import lattice; from scan_inputs import make; lattice.scan(**make())")
    done = python("-c", script, isa="sse9")
    assert done.returncode != 0
    assert "LATTICE_ISA" in done.stderr and "sse9" in done.stderr and next(iter(NEEDS)) in done.stderr
