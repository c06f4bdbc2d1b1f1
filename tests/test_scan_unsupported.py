"""What the operators cannot do is said in one sentence, at once: forward-mode derivatives, other devices, wrong bounds."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import lattice
import rule_inputs
from scan_inputs import make

FORMS = [dict(), dict(method="linear2", chunk=4), dict(method="linear2", chunk=4, sweeps=2)]


def jvp(f, x):
    return torch.func.jvp(f, (x,), (torch.ones_like(x),))


def jacfwd(f, x):
    return torch.func.jacfwd(f)(x)


def dual(f, x):
    with torch.autograd.forward_ad.dual_level():
        return torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))))


@pytest.mark.parametrize("differentiate", [jvp, jacfwd, dual])
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", ["q", "gamma", "mu", "state"])
def test_scan_has_no_tangents(differentiate, form, name):
    inputs = make()
    with pytest.raises(NotImplementedError, match=r"\[scan\] has no forward-mode.*autograd.grad"):
        differentiate(lambda x: lattice.scan(**dict(inputs, **{name: x}), **form)[0], inputs[name])


@pytest.mark.parametrize("differentiate", [jvp, jacfwd, dual])
@pytest.mark.parametrize("rule", ["deltanet", "gla", "mlstm"])
def test_recur_has_no_tangents(differentiate, rule):
    inputs = rule_inputs.make(rule)
    for name in inputs:
        with pytest.raises(NotImplementedError, match=r"\[recur\] has no forward-mode"):
            differentiate(lambda x, name=name: lattice.recur(rule, **dict(inputs, **{name: x}))[0], inputs[name])


def on(device, inputs):
    return {name: x.to(device) for name, x in inputs.items()}


def fake(device, inputs):
    return {name: torch.empty_like(x, device=device) for name, x in inputs.items()}


def test_exact_recurrence_of_a_device_without_kernels():
    with FakeTensorMode():
        with pytest.raises(ValueError, match=r"\[scan\].*on xla.*CPU.*linear2"):
            lattice.scan(**fake("xla", make()))
        with pytest.raises(ValueError, match=r"\[recur\].*on xla.*CPU"):
            lattice.recur("deltanet", **fake("xla", rule_inputs.make("deltanet")))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_gpu_has_kernels(form):
    """Their shapes, that is: docs/gpu.md says what is tested without one."""
    with FakeTensorMode():
        y, state = lattice.scan(**fake("cuda", make()), **form)
        assert y.device.type == state.device.type == "cuda"


@pytest.mark.parametrize("device", ["meta", "fake cuda"])
def test_attention_without_values_of_its_bounds(device):
    inputs = rule_inputs.make("softmax_attention", B=1)
    bounds = torch.tensor([0, 4, 9])
    with pytest.raises(ValueError, match=r"\[recur\].*cu_seqlens"):
        if device == "meta":
            lattice.recur("softmax_attention", **on("meta", inputs), cu_seqlens=bounds.to("meta"))
        with FakeTensorMode():
            fake = {name: torch.empty(x.shape, device="cuda") for name, x in inputs.items()}
            lattice.recur("softmax_attention", **fake, cu_seqlens=torch.empty(3, dtype=torch.int64, device="cuda"))


@pytest.mark.parametrize("bounds", [[1, 4, 9], [0, 5, 4, 9], [0, 4, 8], [0, 4, 10], [0]])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_wrong_bounds_of_every_form(bounds, dtype, form):
    inputs = make(B=1)
    inputs["state"] = inputs["state"].expand(max(1, len(bounds) - 1), -1, -1, -1)
    with pytest.raises(ValueError, match=r"\[scan\].*cu_seqlens"):
        lattice.scan(**inputs, cu_seqlens=torch.tensor(bounds, dtype=dtype), **form)
    with pytest.raises(ValueError, match=r"\[recur\].*cu_seqlens"):
        lattice.recur("softmax_attention", **rule_inputs.make("softmax_attention", B=1),
                      cu_seqlens=torch.tensor(bounds, dtype=dtype))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_bounds_of_32_bits_are_taken(form):
    inputs = make(B=1)
    inputs["state"] = inputs["state"].expand(2, -1, -1, -1)
    bounds = torch.tensor([0, 4, 9])
    for x, y in zip(lattice.scan(**inputs, cu_seqlens=bounds, **form),
                    lattice.scan(**inputs, cu_seqlens=bounds.int(), **form)):
        assert torch.equal(x, y)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_head_that_starts_from_zeros_is_refused(form, dtype):
    inputs = make(dtype=dtype)
    with pytest.raises(ValueError, match=r"\[scan\] state is all zeros in head 0 of sequence 0.*no valid zero state"):
        lattice.scan(**dict(inputs, state=torch.zeros_like(inputs["state"])), **form)
    state = inputs["state"].clone()
    state[1, 1] = 0
    with pytest.raises(ValueError, match=r"zeros in head 1 of sequence 1"):
        lattice.scan(**dict(inputs, state=state), **form)
    state[1, 1, -1, -1] = 1e-30
    lattice.scan(**dict(inputs, state=state), **form)


def test_what_shrinkage_has_emptied_goes_on():
    inputs = make(lam=True)
    y, state = lattice.scan(**dict(inputs, state=torch.zeros_like(inputs["state"])))
    assert torch.isfinite(y).all() and torch.isfinite(state).all()


def test_the_chunk_form_of_recur_has_tangents():
    inputs = rule_inputs.make("deltanet")
    _, tangent = torch.func.jvp(lambda k: lattice.recur("deltanet", **dict(inputs, k=k), method="chunk")[0], (inputs["k"],),
                                (torch.ones_like(inputs["k"]),))
    step = 1e-6
    ahead, behind = (lattice.recur("deltanet", **dict(inputs, k=inputs["k"] + d))[0] for d in (step, -step))
    torch.testing.assert_close(tangent, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)
