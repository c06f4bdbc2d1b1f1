"""Where the program printed in the paper is right, and where it is wrong (docs/errata.md has the numbers)."""

import numpy as np
import pytest

from oracle import chunk_ref, lattice_ref, paper_listing
from oracle.samples import batched, one_head


def slot_norms(S):
    return np.linalg.norm(S, axis=-1)


@pytest.mark.parametrize("mode", ["dec", "sim"])
@pytest.mark.parametrize("forget", [False, True])
def test_step_is_right_up_to_its_eps(mode, forget):
    """Unit slots, eight tokens: one part in a million per token, with and without the forget gate."""
    S, K, V, Q, gamma, mu = one_head(8, 16, 16)
    mu = mu if forget else np.ones_like(mu)
    S_listing, Y_listing = paper_listing.run(S, K, V, Q, gamma, mu, mode)
    Y, S_exact = lattice_ref.exact_forward(*batched(S, K, V, Q, gamma, mu), objective=mode)
    assert np.abs(Y_listing - Y[0, :, 0]).max() < 2e-5 * np.abs(Y).max()
    assert np.abs(S_listing - S_exact[0, 0]).max() < 2e-5


def test_step_grows_every_slot_by_eps_per_token():
    """|S| + 1e-6 as the norm: 16,384 tokens that write nothing still add 1.64 % to every slot; ours adds nothing."""
    L = 16384
    S, K, V, Q, _, _ = one_head(L, 8, 8)
    off, keep = np.zeros(L), np.ones(L)
    S_listing, _ = paper_listing.run(S, K, V, Q, off, keep)
    np.testing.assert_allclose(slot_norms(S_listing), 1.016384, atol=1e-6)
    S_exact = S[None, None]
    for t in range(L):
        S_exact, _ = lattice_ref.exact_step(S_exact, K[t], V[t], off[:1, None], keep[:1, None], objective="dec",
                                            normalize="token")
    np.testing.assert_allclose(slot_norms(S_exact), 1.0, atol=1e-9)


def test_chunk_beta_as_printed_explodes():
    """eta^2 |s|^2 where mu^2 |s|^2 is meant: with eta = 1/2 and mu = 1 a slot doubles with every token."""
    S, K, V, Q, _, _ = one_head(32, 64, 64)
    eta, mu = np.full(32, 0.5), np.ones(32)
    printed, _ = paper_listing.run(S, K, V, Q, eta, mu, chunk_size=4)
    repaired, _ = paper_listing.run(S, K, V, Q, eta, mu, chunk_size=4, corrected=True)
    assert slot_norms(printed).max() > 1e9
    assert slot_norms(repaired).max() < 2.0


@pytest.mark.parametrize("chunk_size", [2, 4, 16])
@pytest.mark.parametrize("mode", ["dec", "sim"])
def test_chunk_with_the_repaired_beta_is_linear2(mode, chunk_size):
    S, K, V, Q, gamma, mu = one_head(16, 8, 12)
    _, Y_listing = paper_listing.run(S, K, V, Q, gamma, mu, mode, chunk_size, corrected=True)
    Y, _ = chunk_ref.chunk_forward(*batched(S, K, V, Q, gamma, mu), method="linear2", chunk=chunk_size, objective=mode)
    assert np.abs(Y_listing - Y[0, :, 0]).max() < 5e-5 * np.abs(Y).max()


def test_chunk_beta_as_printed_is_right_only_where_eta_equals_mu():
    S, K, V, Q, gamma, mu = one_head(16, 8, 8)
    right, _ = paper_listing.run(S, K, V, Q, gamma, gamma, chunk_size=4, corrected=True)
    printed, _ = paper_listing.run(S, K, V, Q, gamma, gamma, chunk_size=4)
    np.testing.assert_array_equal(printed, right)
    printed, _ = paper_listing.run(S, K, V, Q, gamma, mu, chunk_size=4)
    right, _ = paper_listing.run(S, K, V, Q, gamma, mu, chunk_size=4, corrected=True)
    assert np.abs(printed - right).max() > 100.0


def peak_norm(method, chunk, normalize):
    """Largest slot norm met when one token is written 64 times at gamma = 1, mu = 1."""
    S, K, V, Q, _, _ = one_head(64, 16, 16)
    once = [np.repeat(x[:1], 64, axis=0) for x in (K, V, Q)]
    one, seen = np.ones(64), []
    chunk_ref.chunk_forward(*batched(S, *once, one, one), method=method, chunk=chunk, normalize=normalize,
                            on_state=lambda X: seen.append(slot_norms(X).max()))
    return max(seen)


def test_only_the_exact_recurrence_keeps_the_norm_of_a_repeated_token():
    """Both approximations normalise with a frozen beta, which is not the state's own: slots leave the sphere."""
    assert peak_norm("linear1", 1, "token") == pytest.approx(1.0, abs=1e-9)
    assert peak_norm("linear2", 1, "token") == pytest.approx(1.0, abs=1e-9)
    assert 5.0 < peak_norm("linear1", 64, "token") < 10.0
    assert 100.0 < peak_norm("linear2", 16, "token") < 1e3
    assert 1e6 < peak_norm("linear2", 64, "token") < 1e9
    assert peak_norm("linear2", 64, "chunk") > 1e9
