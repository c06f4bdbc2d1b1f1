"""torch.func over layers and models: grad, functional_call, vmap and gradients of single samples reach every operator."""

import pytest
import torch
from nn_models import MEMORIES, small_model, tokens_of
from torch.func import functional_call, grad, grad_and_value, jacrev, jvp, vmap

import lattice.nn as lnn

SAMPLES = 3


def loss_of(model):
    def loss(parameters, tokens):
        return functional_call(model, parameters, (tokens[:, :-1],), dict(targets=tokens[:, 1:]))[0]

    return loss


def backward(model, tokens):
    loss, _ = model(tokens[:, :-1], targets=tokens[:, 1:])
    return dict(zip(dict(model.named_parameters()), torch.autograd.grad(loss, list(model.parameters()))))


@pytest.mark.parametrize("mixer", MEMORIES)
def test_gradients_of_single_samples(mixer):
    model, tokens = small_model(mixer, layers=1), tokens_of(SAMPLES, 2, 9)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    whole = grad(loss_of(model))(parameters, tokens[0])
    each, losses = vmap(grad_and_value(loss_of(model)), in_dims=(None, 0))(parameters, tokens)
    for i in range(SAMPLES):
        wanted = backward(model, tokens[i])
        for name, gradient in wanted.items():
            # torch's own operators may round differently under vmap; ours are called sample by sample.
            torch.testing.assert_close(each[name][i], gradient, rtol=1e-5, atol=1e-6, msg=lambda text: f"{name}: {text}")
            if i == 0:
                torch.testing.assert_close(whole[name], gradient, rtol=1e-6, atol=1e-7, msg=lambda text: f"{name}: {text}")
    assert losses.shape == (SAMPLES,) and losses.isfinite().all()


@pytest.mark.parametrize("name", ["Lattice", "Mamba2", "MLSTM"])
def test_vmap_over_models_of_one_shape(name):
    """An ensemble: parameters have the vmapped dimension as well."""
    layers = [getattr(lnn, name)(width=16, heads=2, slots=4, seed=seed) for seed in range(SAMPLES)]
    parameters, buffers = torch.func.stack_module_state(layers)
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))

    def run(values, x):
        return functional_call(layers[0], values, (x,))[0]

    got = vmap(run, in_dims=(0, None))(parameters, x)
    for y, layer in zip(got, layers):
        torch.testing.assert_close(y, layer(x)[0], rtol=1e-5, atol=1e-6)
    around = grad(lambda values: vmap(run, in_dims=(0, None))(values, x).square().sum())(parameters)
    for i, layer in enumerate(layers):
        wanted = torch.autograd.grad(layer(x)[0].square().sum(), list(layer.parameters()))
        for (name_of, _), gradient in zip(layer.named_parameters(), wanted):
            torch.testing.assert_close(around[name_of][i], gradient, rtol=1e-5, atol=1e-5)


def test_jacobians_of_a_layer():
    layer = lnn.Lattice(width=8, heads=2, slots=4, seed=1)
    x = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(2))
    wanted = torch.autograd.functional.jacobian(lambda u: layer(u)[0], x)
    torch.testing.assert_close(jacrev(lambda u: layer(u)[0])(x), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mixer", MEMORIES)
def test_layers_have_no_tangents_and_no_second_derivatives(mixer):
    """An error of ours, never a silent zero, in the input and in every parameter."""
    model, x = small_model(mixer, layers=1), torch.randn(1, 4, 32, generator=torch.Generator().manual_seed(2))
    layer = model.blocks[0].mixer
    values = {name: p.detach() for name, p in layer.named_parameters()}

    def run(values, x):
        return functional_call(layer, values, (x,))[0]

    with pytest.raises(NotImplementedError, match="has no forward-mode derivatives"):
        jvp(lambda u: run(values, u), (x,), (torch.ones_like(x),))
    for name, value in values.items():
        with pytest.raises(NotImplementedError, match="has no forward-mode derivatives"):
            jvp(lambda p, name=name: run(values | {name: p}, x), (value,), (torch.ones_like(value),))
    with pytest.raises(RuntimeError, match="has first derivatives only"):
        grad(lambda u: grad(lambda v: run(values, v).square().sum())(u).square().sum())(x)


def operators():
    ops = torch.ops.lattice
    x, w = torch.randn(2, 5, 6), torch.randn(6)
    filters = torch.randn(6, 4), torch.randn(6)
    return {
        "causal_conv": lambda u: ops.causal_conv(u, *filters),
        "unit_convs": lambda u: ops.unit_convs(u, *filters, *filters, 3)[0],
        "rms_norm": lambda u: ops.rms_norm(u, w, 1e-5),
        "add_rms_norm": lambda u: ops.add_rms_norm(u, x, w, 1e-5)[1],
        "gated_layer_norm": lambda u: ops.gated_layer_norm(u, x, w, w, 1e-5),
        "silu_times": lambda u: ops.silu_times(u, x),
        "projections": lambda u: ops.projections(u, [torch.ones(3, 6), torch.ones(2, 6)])[1],
        "linear_cross_entropy": lambda u: ops.linear_cross_entropy(u.flatten(0, 1), torch.ones(4, 6), torch.arange(10) % 4),
    }


@pytest.mark.parametrize("name", operators())
def test_what_has_no_derivative_is_refused(name):
    """Second derivatives and forward mode: an error, never a silent zero."""
    run, x = operators()[name], torch.randn(2, 5, 6)
    with pytest.raises(RuntimeError, match="has first derivatives only"):
        grad(lambda u: grad(lambda v: run(v).square().sum())(u).square().sum())(x)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(run(leaf).square().sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="has first derivatives only"):
        torch.autograd.grad(first.square().sum(), leaf)
    with pytest.raises(NotImplementedError, match="has no forward-mode derivatives"):
        jvp(run, (x,), (torch.ones_like(x),))
