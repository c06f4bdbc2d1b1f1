"""A machine for the PTX that Triton emits: it runs on NumPy and checks what a GPU would let pass.

All threads of a block go in step. Noticed on the way: accesses beyond a buffer or misaligned, words and registers that
are read before they are written, branches that threads of a block take differently, and races, which are two accesses
of different threads to one word, one of them a write, without a barrier in between. The approximate instructions
(rsqrt.approx and the like) err within their documented bounds, differently for every argument.

Program is the same machine as C without most of these checks, for very long runs.

Not modelled: SASS (ptxas is trusted), warps that drift apart, memory order between blocks, time.
"""

from ptx.machine import launch
from ptx.memory import Fault
from ptx.translate import Program

__all__ = ["Fault", "Program", "launch"]
