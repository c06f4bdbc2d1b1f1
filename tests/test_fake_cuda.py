"""What torch.compile sees of tensors on a GPU, without one: fake CUDA tensors through the public operators."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import lattice
from chunk_forms import METHODS
from scan_inputs import make


class Calls(TorchDispatchMode):
    """Notes the operators that are called, with the shapes of what they return."""

    def __init__(self):
        super().__init__()
        self.shapes = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, tuple):
            self.shapes[function.name()] = [tuple(x.shape) for x in out if isinstance(x, torch.Tensor)]
        return out


def run(device, T=150, **options):
    """The shapes of all that the operators return, forward and backward."""
    with FakeTensorMode(), Calls() as calls:
        x = {name: torch.empty(t.shape, device=device, requires_grad=True) for name, t in make(T=T).items()}
        y, state = lattice.scan(**x, **options)
        assert y.device.type == device and y.shape == x["v"].shape and state.shape == x["state"].shape
        grads = torch.autograd.grad((y.sum(), state.sum()), list(x.values()))
        assert [g.shape for g in grads] == [t.shape for t in x.values()]
    return calls.shapes


def test_exact():
    assert "lattice::_forward" in run("cuda")


@pytest.mark.parametrize("method", METHODS)
def test_chunk_forms_keep_what_products_of_matrices_keep(method):
    """The states at the ends of all chunks but the last; the CPU's kernels keep others."""
    B, H, M, D = make()["state"].shape
    kept = run("cuda", method=method, chunk=16)["lattice::_chunk_forward"][2]
    assert kept == (B * ((150 - 1) // 16), H, M, D)
    assert run("cpu", method=method, chunk=16)["lattice::_chunk_forward"][2] != kept


@pytest.mark.parametrize("rule", ["linear_attention", "gla", "gated_deltanet"])
def test_other_memories_in_chunks(rule):
    import rule_inputs

    with FakeTensorMode():
        x = {name: torch.empty(t.shape, device="cuda") for name, t in rule_inputs.make(rule).items()}
        y, state = lattice.recur(rule, **x, method="chunk", chunk=4)
    assert y.device.type == "cuda" and y.shape == x["v"].shape
