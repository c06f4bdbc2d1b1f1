"""The paper's printed equations against what they are meant to say (docs/errata.md, same numbering)."""

import numpy as np
import pytest
import torch

from oracle import chunk_ref, lattice_ref, rules_ref
from oracle.samples import batched, one_head

ONE = np.array(1.0)


def step(S, k, v, gamma=ONE, mu=ONE, normalize="none"):
    return lattice_ref.exact_step(S, k, v, np.asarray(gamma), np.asarray(mu), objective="dec", normalize=normalize)[1]


def test_2_the_squared_norm_of_the_update_has_a_minus():
    S, K, V, *_ = one_head(1, 8, 8)
    w = step(S, K[0], V[0])
    along = S @ w["h"]
    measured = (w["Delta"] ** 2).sum(-1)
    first, second = (w["h"] ** 2).sum() * K[0] ** 2, (S**2).sum(-1) * (along * K[0]) ** 2
    np.testing.assert_allclose(first - second, measured, rtol=1e-9)
    assert np.abs((first + second) / measured - 1.0).max() > 0.5


def test_3_beta_without_mu_shrinks_the_slots():
    """With mu = 0.9 the printed (1 + |Delta|^2)^(-1/2) loses the norm; (mu^2 + |Delta|^2)^(-1/2) keeps it."""
    S0, K, V, _, gamma, _ = one_head(32, 8, 8)
    norms = {}
    for form, kept in (("printed", 1.0), ("right", 0.9**2)):
        S = S0
        for t in range(32):
            Delta = gamma[t] * step(S, K[t], V[t])["Delta"]
            beta = (kept + (Delta**2).sum(-1)) ** -0.5
            S = beta[:, None] * (0.9 * S - Delta)
        norms[form] = np.linalg.norm(S, axis=-1)
    np.testing.assert_allclose(norms["right"], 1.0, atol=1e-9)
    assert norms["printed"].max() < 0.9


def test_4_beta_from_a_key_that_contains_beta_is_not_the_normalisation():
    """Read literally, beta solves beta^2 (1 + beta^2 d) = 1, which leaves slots longer than one."""
    d = 1.0
    literal = np.sqrt((np.sqrt(1.0 + 4.0 * d) - 1.0) / (2.0 * d))
    assert literal**2 * (1.0 + literal**2 * d) == pytest.approx(1.0)
    assert literal * np.sqrt(1.0 + d) == pytest.approx(1.1118, abs=1e-4)
    assert (1.0 + d) ** -0.5 * np.sqrt(1.0 + d) == pytest.approx(1.0)


def test_5_the_chunk_a_token_belongs_to():
    """t - mod(t,C) sends the last token of a chunk to the state it is about to produce."""
    C = 4
    printed = [t - t % C for t in range(1, 9)]
    meant = [C * ((t - 1) // C) for t in range(1, 9)]
    assert printed == [0, 0, 0, 4, 4, 4, 4, 8]
    assert meant == [0, 0, 0, 0, 4, 4, 4, 4]
    lengths = [b * (C + 1) - b * C for b in range(4)]
    assert lengths == [0, 1, 2, 3], "the printed slice of block b holds b tokens, not C"


def matrix_form(S, G, W, R, H, Q):
    """linear1 of one chunk as matrix products, Lambda read as the rows a_tau, f as a column sum."""
    c = len(H)
    a = np.cumprod(G, axis=0)
    Omega = np.array([[np.prod(G[i + 1 : j + 1], axis=0) if i <= j else np.zeros(G.shape[1]) for i in range(c)]
                      for j in range(c)])
    F = np.einsum("jim,im->jm", Omega, R)
    P = np.einsum("im,jm,ijm->ij", Q, W, Omega)
    return (Q * (a + F)) @ S - P @ H, (a[-1] + F[-1])[:, None] * S - (W * Omega[-1]).T @ H


def test_6_the_matrix_form_with_lambda_defined_and_f_transposed():
    S, K, V, Q, gamma, mu = one_head(5, 8, 6)
    inputs = batched(S, K, V, Q, gamma, mu)
    frozen = chunk_ref.frozen_terms(*inputs[:3], *inputs[4:], objective="dec", normalize="token")
    H, G, W, R = (x[0, :, 0] for x in frozen)
    Y, S_end = matrix_form(S, G, W, R, H, Q)
    Y_loop, S_loop = chunk_ref.chunk_forward(*inputs, method="linear1", chunk=5)
    np.testing.assert_allclose(Y, Y_loop[0, :, 0], atol=1e-12)
    np.testing.assert_allclose(S_end, S_loop[0, 0], atol=1e-12)
    with pytest.raises(ValueError, match="matmul"):
        np.diag(R @ W)  # f as printed: [C,m] times [C,m]


def test_7_the_detailed_recurrence_assumes_unit_slots():
    """Slots of length 2: the printed h^ = S^T h and k^ = gamma beta k are no longer a projection."""
    S, K, V, *_ = one_head(1, 8, 8)
    S = 2.0 * S
    w = step(S, K[0], V[0])
    printed = np.outer(K[0], w["h"]) - ((S @ w["h"]) * K[0])[:, None] * S
    general = np.outer(K[0], w["h"]) / 2.0 - ((S @ w["h"]) / 4.0 * K[0] / 2.0)[:, None] * S
    np.testing.assert_allclose(general, w["Delta"], atol=1e-11)
    assert np.abs((w["Delta"] * S).sum(-1)).max() < 1e-11
    assert np.abs((printed * S).sum(-1)).max() > 0.1


def test_8_linear2_freezes_more_than_h_hat():
    """Freezing h~ alone, with h and beta from the current state, is another recurrence than linear2."""
    S, K, V, Q, gamma, mu = one_head(8, 8, 8)
    inputs = batched(S, K, V, Q, gamma, mu)
    Y_linear2, _ = chunk_ref.chunk_forward(*inputs, method="linear2", chunk=8)
    X, Y_literal = S, []
    Phi0 = lattice_ref.slot_norms(S)[1]
    for t in range(8):
        w = step(X, K[t], V[t], gamma[t], mu[t], normalize="token")
        W = gamma[t] * w["beta"] * w["ch"]
        X = (mu[t] * w["beta"] + (Phi0 @ w["h"]) / w["s"] * W)[:, None] * X - np.outer(W, w["h"])
        Y_literal.append(Q[t] @ X)
    apart = np.abs(np.array(Y_literal) - Y_linear2[0, :, 0]).max() / np.abs(Y_linear2).max()
    assert apart > 0.05


def gated_inputs():
    rng = torch.Generator().manual_seed(0)
    S, k, v = (torch.randn(*n, generator=rng, dtype=torch.float64) for n in ((6, 6), (6,), (6,)))
    return S, k, v, torch.tensor(0.7, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)


def test_9_gla_scales_the_slots_not_the_values():
    """With slots in columns, S diag(mu) is gated linear attention; the table prints diag(mu) S."""
    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 5, 1, 6, generator=rng, dtype=torch.float64) for _ in range(3))
    mu = torch.rand(1, 5, 1, 6, generator=rng, dtype=torch.float64)
    y, _ = rules_ref.recur("gla", q, k, v, mu=mu)
    after, before = torch.zeros(6, 6, dtype=torch.float64), torch.zeros(6, 6, dtype=torch.float64)
    for t in range(5):
        write = torch.outer(v[0, t, 0], k[0, t, 0])
        after = after @ torch.diag(mu[0, t, 0]) + write
        before = torch.diag(mu[0, t, 0]) @ before + write
    torch.testing.assert_close(after @ q[0, 4, 0], y[0, 4, 0], rtol=1e-12, atol=1e-12)
    assert (before @ q[0, 4, 0] - y[0, 4, 0]).abs().max() > 0.1


def test_9_gated_deltanet_is_decay_then_delta_not_the_printed_gradient_step():
    S, k, v, mu, gamma = gated_inputs()
    y, new = rules_ref.recur("gated_deltanet", *(x[None, None, None] for x in (k, k, v)), gamma=gamma[None, None, None],
                             mu=mu[None, None, None], state=S[None, None])
    decayed = mu * S
    decay_then_delta = decayed - gamma * torch.outer(k, k @ decayed - v)
    torch.testing.assert_close(new[0, 0], decay_then_delta, rtol=1e-12, atol=1e-12)
    S.requires_grad_()
    ridge = (1.0 - mu) / gamma
    loss = 0.5 * (k @ S - v).square().sum() + 0.5 * ridge * S.square().sum()
    gradient_step = S - gamma * torch.autograd.grad(loss, S)[0]
    assert (gradient_step - new[0, 0]).abs().max() > 0.1


@pytest.mark.parametrize("objective,factor", [("dec", 2.0), ("enc", 2.0), ("sim", 1.0)])
def test_10_the_printed_squared_losses_have_twice_the_printed_gradient(objective, factor):
    S, K, V, *_ = one_head(1, 8, 8)
    _, w = lattice_ref.exact_step(S, K[0], V[0], ONE, ONE, objective=objective, normalize="none")
    St, k, v = torch.tensor(S, requires_grad=True), torch.tensor(K[0]), torch.tensor(V[0])
    Phi = St / St.norm(dim=-1, keepdim=True)
    loss = {"dec": lambda: (k @ Phi - v).square().sum(), "enc": lambda: (Phi @ v - k).square().sum(),
            "sim": lambda: -torch.dot(k @ Phi, v)}[objective]()
    gradient = torch.autograd.grad(loss, St)[0].numpy()
    np.testing.assert_allclose(gradient, factor * w["Delta"], atol=1e-9)


@pytest.mark.parametrize("layers,width,tokens,dec,dot,head_width", [
    (12, 768, 5e9, 2.577931200e18, 2.574609120e18, 64),
    (24, 1024, 15e9, 2.747121408e19, 2.743579008e19, 64),
    (24, 1536, 30e9, 1.279067400e20, 1.278005400e20, 96),
])
def test_11_flops_of_the_scaling_figure_tell_the_head_width(layers, width, tokens, dec, dot, head_width):
    """Dec has one forget gate per head more than Dot: width + 1 weights per head and layer, 6 FLOPs per weight."""
    weights = (dec - dot) / (6.0 * tokens)
    heads = weights / (layers * (width + 1))
    assert heads == pytest.approx(width / head_width, rel=1e-3)
