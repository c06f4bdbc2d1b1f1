"""lattice.recur as torch operators: opcheck for every rule."""

import pytest
import torch

import lattice
from rule_inputs import RECURRENT, make, make_state

GATES = ("gamma", "mu", "igate", "fgate")


@pytest.mark.parametrize("rule", RECURRENT)
def test_opcheck(rule):
    x = {name: t.requires_grad_() for name, t in make(rule, T=40).items()}
    gates = [x.get(gate) for gate in GATES]
    torch.library.opcheck(torch.ops.lattice.recur.default, (rule, x["q"], x["k"], x["v"], *gates, None, None))


def test_opcheck_attention():
    x = {name: t.requires_grad_() for name, t in make("softmax_attention", T=20).items()}
    torch.library.opcheck(torch.ops.lattice.attention.default, (x["q"], x["k"], x["v"]))
    keys, values = make_state("softmax_attention")
    torch.library.opcheck(torch.ops.lattice.attention.default, (x["q"], x["k"], x["v"], keys, values))


@pytest.mark.parametrize("rule", lattice.rules())
def test_bfloat16_inputs(rule):
    """Computed in float32 or better: the result is that of the rounded inputs, rounded once at the end."""
    half = {name: x.bfloat16() for name, x in make(rule, T=30, M=16, D=16).items()}
    y, _ = lattice.recur(rule, **half)
    full, _ = lattice.recur(rule, **{name: x.float() for name, x in half.items()})
    assert y.dtype == torch.bfloat16
    tolerance = 2**-6 if rule == "softmax_attention" else 2**-8
    torch.testing.assert_close(y.float(), full, rtol=tolerance, atol=tolerance * float(full.abs().max()))
