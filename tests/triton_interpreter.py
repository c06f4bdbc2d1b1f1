"""What Triton's interpreter lacks for our tests: speed, and the fused product that the kernels rely on."""

import os

import numpy as np
import torch


def prepare():
    """Call it before the first kernel; TRITON_INTERPRET=1 must be in the environment from the start."""
    assert os.environ.get("TRITON_INTERPRET") == "1"
    torch.set_num_threads(1)
    from triton.runtime import interpreter

    interpreter.InterpreterBuilder.create_fma = _fma
    interpreter.ReduceOps.generic_reduce = _reduce
    _patch_once_a_launch(interpreter)


def _fma(self, x, y, z):
    """x y + z rounded once; Triton's own rounds the product as well."""
    from triton.runtime.interpreter import TensorHandle

    wide = np.float64 if x.data.dtype == np.float32 else np.longdouble
    out = x.data.astype(wide) * y.data + z.data
    return TensorHandle(out.astype(x.data.dtype), z.dtype.scalar)


def _reduce(self, inputs):
    """Sums of several arrays at once, halves with halves; Triton's own goes from number to number. Lengths are powers of
    two."""
    def part(x, of, count):
        return self.to_tensor(np.take(x.handle.data, range(of * count, (of + 1) * count), self.axis), x.dtype)

    while (count := inputs[0].handle.data.shape[self.axis] // 2) > 0:
        inputs = self.combine_fn.fn(*(part(x, 0, count) for x in inputs), *(part(x, 1, count) for x in inputs))
    assert self.keep_dims
    return tuple(inputs)


def _patch_once_a_launch(interpreter):
    """Triton patches its language anew in every call from one device function to another; once for each function and
    launch is enough, and takes half of the time away."""
    patched, patch, launch = set(), interpreter._patch_lang, interpreter.GridExecutor.__call__

    def patch_once(function):
        if function not in patched:
            patched.add(function)
            return patch(function)

    def launch_anew(self, *args, **kwargs):
        patched.clear()
        return launch(self, *args, **kwargs)

    interpreter._patch_lang = patch_once
    interpreter.GridExecutor.__call__ = launch_anew
