"""Makes `lattice`, `oracle` and `golden_files` importable from a checkout."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "python"):
    sys.path.insert(0, str(folder))
