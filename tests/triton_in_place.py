"""pytest plugin: the Triton kernels, interpreted, in place of the C++ ones for the tests of this process.

    TRITON_INTERPRET=1 python -m pytest -p triton_in_place tests/test_scan_golden.py
"""

import triton_interpreter

triton_interpreter.prepare()

import lattice  # noqa: E402, F401  (the operators must be there before their kernels are replaced)
from lattice.triton import dispatch  # noqa: E402

dispatch.register("CPU", override=True)
