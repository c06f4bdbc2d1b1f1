"""lattice.scan against the golden vectors, forward and backward, in float64 and float32.

test_isa.py runs this file again under every instruction set of the machine.
"""

import pytest
import torch

import golden_files
import lattice

DTYPES = [torch.float64, torch.float32]
EXACT = golden_files.names("exact_")


def run(g, dtype, mu=True):
    leaves = {key: g.leaf(key, dtype) for key in ("Q", "K", "V", "gamma", "mu", "lam", "S0")}
    y, state = lattice.scan(leaves["Q"], leaves["K"], leaves["V"], leaves["gamma"], leaves["mu"] if mu else None,
                            leaves["S0"], lam=leaves["lam"], objective=g.meta["objective"],
                            normalize=g.meta["normalize"])
    return leaves, y, state


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_golden(name, dtype):
    g = golden_files.load(name)
    leaves, y, state = run(g, dtype)
    assert y.dtype == dtype and state.dtype == dtype
    g.judge("Y", y, dtype)
    g.judge("S_final", state, dtype)
    wanted = [key for key in g.tensors if key in golden_files.GRADIENT_OF]
    grads = torch.autograd.grad((y, state), [leaves[golden_files.GRADIENT_OF[key]] for key in wanted],
                                (g.cotangent("dY", dtype), g.cotangent("dS_final", dtype)))
    for key, value in zip(wanted, grads):
        assert value.dtype == dtype
        g.judge(key, value, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [name for name in EXACT if golden_files.load(name).meta["forget"] == "off"])
def test_golden_without_a_forget_gate(name, dtype):
    """Files whose mu is one everywhere: leaving mu out is the same computation."""
    g = golden_files.load(name)
    assert (g["mu"] == 1.0).all()
    leaves, y, state = run(g, dtype, mu=False)
    g.judge("Y", y, dtype)
    g.judge("S_final", state, dtype)
    wanted = [key for key in g.tensors if key in golden_files.GRADIENT_OF and key != "dmu"]
    grads = torch.autograd.grad((y, state), [leaves[golden_files.GRADIENT_OF[key]] for key in wanted],
                                (g.cotangent("dY", dtype), g.cotangent("dS_final", dtype)))
    for key, value in zip(wanted, grads):
        g.judge(key, value, dtype)
