"""What the rules are to each other, to gradient descent, and to PyTorch's own attention."""

import pytest
import torch
import torch.nn.functional as F

import lattice
from rule_inputs import make, make_state

EXACTLY = dict(rtol=1e-11, atol=1e-11)


def assert_same(a, b):
    for x, y in zip(a, b):
        torch.testing.assert_close(x, y, **EXACTLY)


def run(rule, inputs, **gates):
    return lattice.recur(rule, inputs["q"], inputs["k"], inputs["v"], state=make_state(rule)[0], **gates)


def test_gated_deltanet_that_forgets_nothing_is_deltanet():
    x = make("gated_deltanet")
    one = torch.ones_like(x["mu"])
    assert_same(run("gated_deltanet", x, gamma=x["gamma"], mu=one), run("deltanet", x, gamma=x["gamma"]))


def test_rwkv7_that_forgets_nothing_is_deltanet():
    x = make("rwkv7")
    one = torch.ones_like(x["mu"])
    assert_same(run("rwkv7", x, gamma=x["gamma"], mu=one), run("deltanet", x, gamma=x["gamma"]))


def test_gla_with_one_gate_for_all_slots_is_mamba2():
    x = make("mamba2")
    wide = x["mu"][..., None].expand(*x["mu"].shape, 4).contiguous()
    assert_same(run("gla", x, mu=wide), run("mamba2", x, mu=x["mu"]))


def test_mamba2_that_forgets_nothing_is_linear_attention():
    x = make("mamba2")
    assert_same(run("mamba2", x, mu=torch.ones_like(x["mu"])), run("linear_attention", x))


def test_rwkv7_that_corrects_nothing_only_decays():
    x = make("rwkv7")
    S = make_state("rwkv7")[0]
    _, state = run("rwkv7", x, gamma=torch.zeros_like(x["gamma"]), mu=x["mu"])
    torch.testing.assert_close(state, S * x["mu"].prod(1)[..., None], **EXACTLY)


def descend(loss, inputs, S):
    """Online gradient descent with step gamma on loss(S, k, v) / 2, and the read-out after every step."""
    Y = []
    for t in range(inputs["k"].shape[1]):
        S = S.detach().requires_grad_()
        k, v, gamma = (inputs[name][:, t] for name in ("k", "v", "gamma"))
        (slope,) = torch.autograd.grad(0.5 * loss(S, k, v), S)
        S = S - gamma[..., None, None] * slope
        Y.append(torch.einsum("bhm,bhmd->bhd", inputs["q"][:, t], S))
    return torch.stack(Y, 1).detach(), S.detach()


def read(k, S):
    return torch.einsum("bhm,bhmd->bhd", k, S)


def direction(x):
    return x / (x.square().sum(-1, keepdim=True) + 1e-12).sqrt()


def test_deltanet_is_gradient_descent_on_the_decoding_loss_without_normalised_slots():
    """Take Phi, and with it the projection, out of Lattice's Dec: deltanet remains."""
    x, S = make("deltanet"), make_state("deltanet")[0]
    assert_same(run("deltanet", x, gamma=x["gamma"]), descend(lambda S, k, v: (read(k, S) - v).square().sum(), x, S))
    with_phi = descend(lambda S, k, v: (read(k, direction(S)) - v).square().sum(), x, S)
    assert_same(lattice.scan(x["q"], x["k"], x["v"], x["gamma"], None, S, objective="dec", normalize="none"), with_phi)


def test_ttt_is_gradient_descent_on_the_loss_with_a_normalised_read():
    x, S = make("ttt"), make_state("ttt")[0]
    loss = lambda S, k, v: (direction(read(k, S)) - v).square().sum()
    assert_same(run("ttt", x, gamma=x["gamma"]), descend(loss, x, S))


def test_linear_attention_is_attention_without_softmax():
    x = make("linear_attention", T=40)
    y, _ = lattice.recur("linear_attention", **x)
    scores = torch.einsum("bthm,bshm->bhts", x["q"], x["k"]).tril()
    torch.testing.assert_close(y, torch.einsum("bhts,bshd->bthd", scores, x["v"]), **EXACTLY)


def test_mamba2_is_attention_with_a_decaying_mask():
    x = make("mamba2", T=40)
    y, _ = lattice.recur("mamba2", **x)
    total = x["mu"].log().cumsum(1).transpose(1, 2)
    decay = torch.exp(total[..., :, None] - total[..., None, :]).tril()
    scores = torch.einsum("bthm,bshm->bhts", x["q"], x["k"]) * decay
    torch.testing.assert_close(y, torch.einsum("bhts,bshd->bthd", scores, x["v"]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("past", [0, 5])
def test_softmax_attention_is_torch_attention(past):
    x = make("softmax_attention", T=20)
    cache = make_state("softmax_attention", past=past) if past else None
    y, (keys, values) = lattice.recur("softmax_attention", **x, state=cache)
    k = torch.cat([cache[0], x["k"]], 1) if past else x["k"]
    v = torch.cat([cache[1], x["v"]], 1) if past else x["v"]
    assert torch.equal(keys, k) and torch.equal(values, v)
    mask = torch.ones(20, 20 + past, dtype=torch.bool).tril(past)
    expected = F.scaled_dot_product_attention(*(z.transpose(1, 2) for z in (x["q"], k, v)), attn_mask=mask)
    torch.testing.assert_close(y, expected.transpose(1, 2), **EXACTLY)


def test_mlstm_without_its_stabiliser():
    """The running maximum m cancels: exp(i) and sigmoid(f) used as they are give the same read-out."""
    x = make("mlstm", T=20)
    y, (S, n, m) = lattice.recur("mlstm", **x)
    C = torch.zeros_like(S)
    N = torch.zeros_like(n)
    for t in range(20):
        i, f = x["igate"][:, t].exp(), torch.sigmoid(x["fgate"][:, t])
        k = x["k"][:, t] * 4**-0.5
        C = f[..., None, None] * C + i[..., None, None] * (k[..., None] * x["v"][:, t][..., None, :])
        N = f[..., None] * N + i[..., None] * k
        bound = (x["q"][:, t] * N).sum(-1).abs().clamp(min=1.0)
        torch.testing.assert_close(y[:, t], read(x["q"][:, t], C) / bound[..., None], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(S * m.exp()[..., None, None], C, rtol=1e-10, atol=1e-10)


def test_mlstm_survives_gates_that_overflow_exp():
    x = make("mlstm", T=20, dtype=torch.float32)
    x["igate"] = x["igate"] * 500.0
    x["fgate"] = x["fgate"] * 500.0
    y, state = lattice.recur("mlstm", **x)
    assert torch.isfinite(y).all() and all(torch.isfinite(part).all() for part in state)
