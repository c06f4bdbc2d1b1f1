"""Layers on devices that have no kernels of ours, where they are made of ATen operators: on the CPU against the kernels,
and as fake tensors of a GPU, which have its device but no values. The gradients of the latter want torch's CUDA build:
in the CPU build autograd's engine asks for a GPU."""

import contextlib
import copy

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import fake_gpu
from nn_models import MEMORIES, OPTIONS, RECURRENT, SMALL, small_model, tokens_of
from test_nn_ops import CASES, CU, conv_inputs, draw, leaves_of, outputs_and_gradients

fake_gpu.prepare()
ops = torch.ops.lattice
FUSED = [name for name in CASES if not name.startswith(("gates", "rotate", "activate"))]


@contextlib.contextmanager
def composites():
    ops._composite_layers(True)
    try:
        yield
    finally:
        ops._composite_layers(False)


def close(got, want, narrow):
    """Within rounding of what is computed: of bfloat16, where something is."""
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype and a.shape == b.shape
            tolerance = (2e-2 if narrow else 1e-5) * max(1.0, float(b.detach().abs().max()))
            torch.testing.assert_close(a, b, rtol=2e-2 if narrow else 1e-5, atol=tolerance)


@pytest.mark.parametrize("name", FUSED)
def test_values_and_gradients_are_those_of_the_kernels(name):
    op, args = CASES[name]
    want = outputs_and_gradients(op, args)
    with composites():
        got = outputs_and_gradients(op, args)
    for a, b in zip(got, want):
        close(a, b, "bfloat16" in name)


def test_the_past_of_packed_sequences_has_a_gradient():
    """Which the kernels do not have: the same as of the sequences one by one."""
    x, past, (w, b) = draw(1, 40, 6), draw(3, 3, 6), conv_inputs()
    with composites():
        got = torch.autograd.grad(ops.causal_conv(x, w, b, past, CU).square().sum(), past)[0]
    for n, (begin, end) in enumerate(zip(CU.tolist(), CU.tolist()[1:])):
        if begin < end:
            own = past[n:n + 1].detach().requires_grad_()
            want = torch.autograd.grad(ops.causal_conv(x[:, begin:end], w, b, own).square().sum(), own)[0]
            torch.testing.assert_close(got[n:n + 1], want)
        else:
            assert not got[n].any()


@pytest.mark.parametrize("bounds", [[1, 4, 9], [0, 5, 4, 9], [0, 4, 8], [0, 4, 10]])
def test_wrong_bounds_are_noticed(bounds):
    x, (w, b) = draw(1, 9, 6), conv_inputs()
    with composites(), pytest.raises(ValueError, match=r"\[causal_conv\].*cu_seqlens must"):
        ops.causal_conv(x, w, b, None, torch.tensor(bounds))


def test_bounds_that_change_in_place_are_checked_again():
    x, (w, b), bounds = draw(1, 9, 6), conv_inputs(), torch.tensor([0, 4, 9])
    with composites():
        ops.causal_conv(x, w, b, None, bounds)
        bounds[1] = 12
        with pytest.raises(ValueError, match="must never fall"):
            ops.causal_conv(x, w, b, None, bounds)


def run(model, **inputs):
    loss, states = model(tokens_of(2, 20), targets=tokens_of(2, 20, seed=5), **inputs)
    return loss, torch.autograd.grad(loss, list(model.parameters()), allow_unused=True), states


@pytest.mark.parametrize("name", [*OPTIONS, "transformer"])
def test_a_model_is_that_of_the_kernels(name):
    model = small_model(**OPTIONS.get(name, dict(mixer="transformer")))
    want = run(model)
    with composites():
        got = run(model)
    torch.testing.assert_close(got[0], want[0], rtol=1e-5, atol=1e-5)
    scale = max(float(g.abs().max()) for g in want[1] if g is not None)
    for a, b in zip(got[1], want[1]):
        if b is not None:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-4 * scale)


def gpu(tensor):
    return torch.empty_like(tensor, device="cuda")


def fake_parameters(model):
    """The parameters as fake tensors on a GPU that is not there."""
    return {name: torch.nn.Parameter(gpu(value)) for name, value in model.named_parameters()}


def gradients(loss, parameters):
    """Those of fake tensors, where there is a GPU: autograd's engine asks the driver for the device."""
    if not torch.cuda.is_available():
        return {}
    return dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values()))))


def call(model, parameters, *args, **kwargs):
    return torch.func.functional_call(model, parameters, args, kwargs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mixer", MEMORIES)
def test_a_model_runs_and_trains_on_a_gpu_without_a_change(mixer, dtype):
    model = small_model(mixer).to(dtype)
    with FakeTensorMode(allow_non_fake_inputs=True):
        parameters = fake_parameters(model)
        tokens = torch.empty(2, 40, dtype=torch.int64, device="cuda")
        logits, states = call(model, parameters, tokens)
        assert logits.device.type == "cuda" and logits.shape == (2, 40, SMALL["vocab_size"])
        logits, _ = call(model, parameters, tokens[:, :1], states)
        assert logits.shape == (2, 1, SMALL["vocab_size"])
        loss, _ = call(model, parameters, tokens, targets=tokens)
        assert loss.device.type == "cuda" and loss.dtype == torch.float32 and loss.shape == ()
        for name, gradient in gradients(loss, parameters).items():
            assert gradient.device.type == "cuda" and gradient.dtype == dtype and gradient.shape == parameters[name].shape


@pytest.mark.parametrize("mixer", RECURRENT)
def test_packed_texts_on_a_gpu(mixer):
    model = small_model(mixer)
    with FakeTensorMode(allow_non_fake_inputs=True):
        tokens = torch.empty(1, 40, dtype=torch.int64, device="cuda")
        bounds = torch.empty(4, dtype=torch.int32, device="cuda")
        loss, _ = call(model, fake_parameters(model), tokens, targets=tokens, cu_seqlens=bounds)
        assert loss.device.type == "cuda"


@pytest.mark.parametrize("keys", [dict(method="linear1"), dict(method="linear2"), dict(method="linear2", normalize="chunk")], ids=str)
def test_chunk_forms_on_a_gpu(keys):
    model = small_model(chunk=8, **keys)
    with FakeTensorMode(allow_non_fake_inputs=True):
        parameters = fake_parameters(model)
        tokens = torch.empty(2, 40, dtype=torch.int64, device="cuda")
        loss, _ = call(model, parameters, tokens, targets=tokens)
        assert loss.device.type == "cuda" and all(g.device.type == "cuda" for g in gradients(loss, parameters).values())


def test_under_autocast_on_a_gpu():
    model = small_model()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.autocast("cuda", torch.bfloat16):
        parameters = fake_parameters(model)
        tokens = torch.empty(2, 40, dtype=torch.int64, device="cuda")
        loss, states = call(model, parameters, tokens, targets=tokens)
        assert loss.dtype == torch.float32 and states[0]["memory"].dtype == torch.float32
        assert all(g.dtype == torch.float32 for g in gradients(loss, parameters).values())


def test_compiled_they_give_the_same():
    model = small_model()
    want = run(model)
    torch._dynamo.reset()
    with composites():
        got = run(torch.compile(copy.deepcopy(model), backend="aot_eager", fullgraph=True))
    torch.testing.assert_close(got[0], want[0], rtol=1e-5, atol=1e-5)


def test_meta_tensors_keep_their_shapes():
    model = small_model().to("meta")
    logits, _ = model(torch.empty(2, 40, dtype=torch.int64, device="meta"))
    assert logits.is_meta and logits.shape == (2, 40, SMALL["vocab_size"])


def test_every_case_has_a_gradient_to_compare():
    assert all(leaves_of(CASES[name][1]) for name in FUSED)
