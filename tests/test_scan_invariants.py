"""What must hold of the exact recurrence whatever the numbers are."""

import pytest
import torch

import lattice
from scan_inputs import NORMALIZE, OBJECTIVES, gradients, make, slice_time

DTYPES = [torch.float32, torch.float64]
EXACTLY = dict(rtol=1e-11, atol=1e-11)  # equal but for the order of the sums


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("normalize", NORMALIZE)
def test_slots_have_no_order(objective, normalize):
    inputs = make(M=5)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = dict(inputs, q=inputs["q"][..., order], k=inputs["k"][..., order], state=inputs["state"][:, :, order])
    y, state = lattice.scan(**inputs, objective=objective, normalize=normalize)
    y_moved, state_moved = lattice.scan(**moved, objective=objective, normalize=normalize)
    torch.testing.assert_close(y_moved, y, **EXACTLY)
    torch.testing.assert_close(state_moved, state[:, :, order], **EXACTLY)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("normalize", NORMALIZE)
def test_the_value_space_has_no_preferred_axes(objective, normalize):
    inputs = make(D=6)
    rng = torch.Generator().manual_seed(5)
    R, _ = torch.linalg.qr(torch.randn(6, 6, generator=rng, dtype=torch.float64))
    y, state = lattice.scan(**inputs, objective=objective, normalize=normalize)
    turned = dict(inputs, v=inputs["v"] @ R, state=inputs["state"] @ R)
    y_turned, state_turned = lattice.scan(**turned, objective=objective, normalize=normalize)
    torch.testing.assert_close(y_turned, y @ R, **EXACTLY)
    torch.testing.assert_close(state_turned, state @ R, **EXACTLY)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("t", [0, 1, 32, 50])
def test_the_past_does_not_see_the_future(dtype, t):
    inputs = make(T=51, dtype=dtype)
    other = make(T=51, dtype=dtype, seed=9)
    changed = {name: torch.cat([x[:, :t], other[name][:, t:]], 1) for name, x in inputs.items() if name != "state"}
    y, _ = lattice.scan(**inputs)
    y_changed, _ = lattice.scan(**changed, state=inputs["state"])
    assert torch.equal(y[:, :t], y_changed[:, :t])
    assert not torch.equal(y[:, t], y_changed[:, t])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("lam", [False, True])
def test_a_split_anywhere_is_the_whole_bit_for_bit(dtype, objective, normalize, lam):
    """Odd sizes, so that every kernel path has a remainder; cuts on both sides of a block boundary."""
    inputs = make(B=1, T=70, H=3, M=7, D=19, dtype=dtype, lam=lam)
    options = dict(objective=objective, normalize=normalize)
    y, state = lattice.scan(**inputs, **options)
    for cut in (1, 2, 31, 32, 33, 64, 69):
        y0, mid = lattice.scan(**slice_time(inputs, 0, cut, inputs["state"]), **options)
        y1, end = lattice.scan(**slice_time(inputs, cut, 70, mid), **options)
        assert torch.equal(torch.cat([y0, y1], 1), y), f"cut at {cut}"
        assert torch.equal(end, state), f"cut at {cut}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("M,D", [(64, 64), (16, 64), (5, 3)])
def test_steps_of_one_token_are_the_whole_bit_for_bit(dtype, M, D):
    inputs = make(B=2, T=40, H=2, M=M, D=D, dtype=dtype)
    whole, end = lattice.scan(**inputs)
    state, steps = inputs["state"], []
    for t in range(40):
        y, state = lattice.scan(**slice_time(inputs, t, t + 1, state))
        steps.append(y)
    assert torch.equal(torch.cat(steps, 1), whole)
    assert torch.equal(state, end)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_packed_sequences_are_the_separate_ones_bit_for_bit(dtype):
    """cu_seqlens, an empty sequence included, against one call per sequence."""
    bounds = [0, 5, 5, 38, 40, 73]
    inputs = make(B=1, T=73, H=2, M=5, D=9, dtype=dtype, sequences=5)
    y, state = lattice.scan(**inputs, cu_seqlens=torch.tensor(bounds))
    assert y.shape == (1, 73, 2, 9) and state.shape == (5, 2, 5, 9)
    for n, (start, stop) in enumerate(zip(bounds, bounds[1:])):
        if start == stop:
            assert torch.equal(state[n], inputs["state"][n])
            continue
        y_n, state_n = lattice.scan(**slice_time(inputs, start, stop, inputs["state"][n : n + 1]))
        assert torch.equal(y[:, start:stop], y_n)
        assert torch.equal(state[n : n + 1], state_n)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("normalize", NORMALIZE)
def test_a_token_that_writes_nothing_leaves_the_state(dtype, objective, normalize):
    inputs = make(T=40, dtype=dtype, mu=False)
    inputs["gamma"] = torch.zeros_like(inputs["gamma"])
    for mu in (None, torch.ones_like(inputs["gamma"])):
        y, state = lattice.scan(**inputs, mu=mu, objective=objective, normalize=normalize)
        if normalize == "none":
            assert torch.equal(state, inputs["state"])
        torch.testing.assert_close(state, inputs["state"], rtol=40 * torch.finfo(dtype).eps, atol=0.0)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("lam", [False, True])
def test_token_normalisation_keeps_every_norm(objective, lam):
    inputs = make(T=60, lam=lam)
    _, state = lattice.scan(**inputs, objective=objective, normalize="token")
    torch.testing.assert_close(state.norm(dim=-1), inputs["state"].norm(dim=-1), rtol=1e-9, atol=0.0)


def test_norms_after_a_million_tokens_in_float32():
    """2^20 tokens: every slot within 1e-4 of the length it started with, whatever that was."""
    inputs = make(B=1, T=2**20, H=2, M=16, D=16, dtype=torch.float32)
    inputs["gamma"] = 0.5 * inputs["gamma"]
    _, state = lattice.scan(**inputs)
    drift = state.norm(dim=-1) / inputs["state"].norm(dim=-1) - 1.0
    assert drift.abs().max() < 1e-4


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_normalisation_and_forgetting_norms_never_shrink(objective):
    inputs = make(T=30, mu=False)
    state = inputs["state"]
    before = state.norm(dim=-1)
    for t in range(30):
        _, state = lattice.scan(**slice_time(inputs, t, t + 1, state), objective=objective, normalize="none")
        after = state.norm(dim=-1)
        assert (after >= before * (1.0 - 1e-14)).all()
        before = after
    assert (before > inputs["state"].norm(dim=-1)).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("lam", [False, True])
def test_the_forget_gate_is_redundant_under_token_normalisation(objective, lam):
    """Only gamma/mu matters: scaling both changes nothing, and mu dmu + gamma dgamma = 0 for every token."""
    inputs = make(lam=lam)
    y, state = lattice.scan(**inputs, objective=objective)
    scaled = dict(inputs, gamma=0.5 * inputs["gamma"], mu=0.5 * inputs["mu"])
    y_scaled, state_scaled = lattice.scan(**scaled, objective=objective)
    # The measured beta of lam adds eps^2 to |Z|^2, which does not scale along.
    close = dict(rtol=1e-8, atol=1e-9) if lam else EXACTLY
    torch.testing.assert_close(y_scaled, y, **close)
    torch.testing.assert_close(state_scaled, state, **close)
    y_other, _ = lattice.scan(**dict(inputs, mu=0.5 * inputs["mu"]), objective=objective)
    assert (y_other - y).abs().max() > 1e-2

    _, _, grads = gradients(lattice.scan, inputs, objective=objective)
    balance = inputs["mu"] * grads["mu"] + inputs["gamma"] * grads["gamma"]
    assert balance.abs().max() < 1e-9 * (inputs["mu"] * grads["mu"]).abs().max()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_slot_is_changed_only_at_right_angles_to_itself(objective):
    """<Delta_i, S_i> = 0, Delta read off one token with gamma = 1, mu = 1 and no normalisation."""
    inputs = make(T=1, mu=False)
    inputs["gamma"] = torch.ones_like(inputs["gamma"])
    _, state = lattice.scan(**inputs, objective=objective, normalize="none")
    delta = inputs["state"] - state
    assert delta.norm(dim=-1).min() > 1e-3
    assert (delta * inputs["state"]).sum(-1).abs().max() < 1e-11


@pytest.mark.parametrize("length", [0.5, 3.0, 40.0])
def test_a_step_turns_a_slot_by_the_angle_of_docs_recurrence(length):
    """theta - atan(c sin(theta)), theta being the angle between a slot and where the token pulls it."""
    inputs = make(B=1, T=1, H=1, M=6, D=8)
    inputs["v"] = length * torch.nn.functional.normalize(inputs["v"], dim=-1)
    S, k, v, gamma, mu = (inputs[name].flatten(0, 2) if name in ("k", "v") else inputs[name].squeeze() for name in
                          ("state", "k", "v", "gamma", "mu"))
    k, v = k[0], v[0]
    s = (S.square().sum(-1) + 1e-12).sqrt()
    h = k @ (S / s[:, None]) - v
    target = -k.sign()[:, None] * h

    def angle(slots):
        return torch.nn.functional.cosine_similarity(slots, target, dim=-1).clamp(-1, 1).acos()

    c = gamma / mu * k.abs() * h.norm() / s.square()
    _, state = lattice.scan(**inputs)
    torch.testing.assert_close(angle(state[0, 0]), (angle(S) - (c * angle(S).sin()).atan()).abs(), rtol=1e-7, atol=1e-7)
