"""The PEP 517 backend of this project: scikit-build-core, and auditwheel behind it.

scikit-build-core runs CMake and packs a wheel for this very machine. auditwheel copies the shared libraries of the system
that it needs (Highway, SentencePiece) into the wheel, and names the oldest glibc that it runs with.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from scikit_build_core import build as core
from scikit_build_core.build import (  # noqa: F401  (the hooks that are as they are there)
    build_sdist,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

# They come with torch, and a process must not have them twice.
_OF_TORCH = ("libtorch_cpu.so", "libtorch.so", "libc10.so", "libgomp.so.1")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        plain, repaired = Path(folder, "plain"), Path(folder, "repaired")
        plain.mkdir()
        name = core.build_wheel(str(plain), config_settings, metadata_directory)
        exclude = [word for library in _OF_TORCH for word in ("--exclude", library)]
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", *exclude, "--wheel-dir", repaired, plain / name], check=True)
        (wheel,) = repaired.glob("*.whl")
        target = Path(wheel_directory, wheel.name)
        target.write_bytes(wheel.read_bytes())
    return target.name
