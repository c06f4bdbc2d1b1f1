"""The number of threads, the layout of the inputs and the memory they come from change no bit of a result."""

import pytest
import torch

import lattice
from scan_inputs import gradients, make

DTYPES = [torch.float32, torch.float64]


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def assert_same(a, b):
    y, state, grads = a
    y_b, state_b, grads_b = b
    assert torch.equal(y, y_b) and torch.equal(state, state_b)
    for name in grads:
        assert torch.equal(grads[name], grads_b[name]), f"gradient of {name}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_any_number_of_threads_is_bit_equal(threads, dtype, packed):
    inputs = make(B=1 if packed else 3, T=75, H=5, M=9, D=21, dtype=dtype, lam=packed, sequences=4 if packed else None)
    options = dict(cu_seqlens=torch.tensor([0, 10, 11, 60, 75])) if packed else {}
    threads(1)
    alone = gradients(lattice.scan, inputs, **options)
    for count in (2, 3, 8):
        threads(count)
        assert_same(gradients(lattice.scan, inputs, **options), alone)


def test_two_calls_are_bit_equal():
    inputs = make(B=2, T=75, H=3, M=16, D=16, dtype=torch.float32)
    assert_same(gradients(lattice.scan, inputs), gradients(lattice.scan, inputs))


def heads_first(x):
    """The same values, laid out [B,H,T,...] in memory."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def every_other(x):
    """The same values, every second element of a larger tensor in the last axis."""
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1]), float("nan"), dtype=x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def part_of_a_projection(x):
    """The same values, a slice of a wider tensor in the last axis."""
    wide = torch.full((*x.shape[:-1], x.shape[-1] + 3), float("nan"), dtype=x.dtype)
    wide[..., 1 : 1 + x.shape[-1]] = x
    return wide[..., 1 : 1 + x.shape[-1]]


@pytest.mark.parametrize("layout", [heads_first, every_other, part_of_a_projection])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_views_work_and_are_bit_equal(layout, dtype):
    inputs = make(T=40, M=8, D=8, dtype=dtype, lam=True)
    views = {name: layout(x) for name, x in inputs.items()}
    assert any(not x.is_contiguous() for x in views.values())
    y, state = lattice.scan(**inputs)
    y_view, state_view = lattice.scan(**views)
    assert torch.equal(y, y_view) and torch.equal(state, state_view)

    leaves = {name: x.detach().requires_grad_() for name, x in views.items()}
    y_view, state_view = lattice.scan(**leaves)
    rng = torch.Generator().manual_seed(1)
    dy, dstate = (torch.randn(x.shape, generator=rng, dtype=torch.float64).to(dtype) for x in (y, state))
    grads = torch.autograd.grad((y_view, state_view), tuple(leaves.values()), (layout(dy), layout(dstate)))
    for name, value in zip(leaves, grads):
        expected = gradients(lattice.scan, inputs)[2][name]
        assert torch.equal(value, expected), f"gradient of {name}"


def test_broadcast_inputs_and_cotangents():
    """Stride zero in the inputs (one gate for all heads) and in the cotangent (a plain sum)."""
    inputs = make(T=40)
    expanded = dict(inputs, gamma=inputs["gamma"][:, :, :1].expand(2, 40, 2),
                    state=inputs["state"][:1].expand(2, 2, 4, 6))
    y, state = lattice.scan(**expanded)
    y_full, state_full = lattice.scan(**{name: x.contiguous() for name, x in expanded.items()})
    assert torch.equal(y, y_full) and torch.equal(state, state_full)
    k = inputs["k"].clone().requires_grad_()
    summed = torch.autograd.grad(lattice.scan(**dict(inputs, k=k))[0].sum(), k)[0]
    ones = torch.ones(2, 40, 2, 6, dtype=torch.float64)
    given = torch.autograd.grad(lattice.scan(**dict(inputs, k=k))[0], k, ones)[0]
    assert torch.equal(summed, given)


def test_inputs_are_left_alone():
    inputs = make(T=40, lam=True)
    copies = {name: x.clone() for name, x in inputs.items()}
    gradients(lattice.scan, inputs)
    for name, x in inputs.items():
        assert torch.equal(x, copies[name])


@pytest.fixture
def poisoned_memory():
    """Every torch.empty is filled with NaN, in C++ as in Python."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(8).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_of_the_outputs_is_written(dtype, poisoned_memory):
    inputs = make(T=70, M=7, D=19, dtype=dtype, lam=True)
    clean = gradients(lattice.scan, inputs)
    # The heap too, for buffers that are not torch's: free NaN of the sizes the call is going to ask for.
    for x in [*inputs.values(), *clean[:2]]:
        stale = [torch.full_like(x, float("nan")) for _ in range(4)]
        del stale
    again = gradients(lattice.scan, inputs)
    assert all(torch.isfinite(x).all() for x in (*again[:2], *again[2].values()))
    assert_same(again, clean)
    packed = make(B=1, T=9, dtype=dtype, sequences=3)
    y, state = lattice.scan(**packed, cu_seqlens=torch.tensor([0, 4, 4, 9]))
    assert torch.isfinite(y).all() and torch.isfinite(state).all()


@pytest.mark.parametrize("name", ["q", "k", "v", "gamma", "mu", "state"])
def test_nan_in_an_input_shows_where_it_must_and_nowhere_else(name):
    """It reaches the outputs that depend on it, and no other batch, head or earlier token."""
    inputs = make(B=2, T=40, H=2)
    clean, clean_state = lattice.scan(**inputs)
    inputs[name] = inputs[name].clone()
    if name == "state":
        inputs[name][1, 1, 0, 0] = float("nan")
        first = 0
    else:
        inputs[name][1, 20, 1] = float("nan")
        first = 20
    y, state = lattice.scan(**inputs)
    assert y[1, first, 1].isnan().any()
    assert torch.equal(y[0], clean[0]) and torch.equal(y[:, :, 0], clean[:, :, 0])
    assert torch.equal(y[1, :first, 1], clean[1, :first, 1])
    assert torch.equal(state[0], clean_state[0])
    if name == "q":
        assert torch.equal(state, clean_state)
    else:
        assert state[1, 1].isnan().any() and y[1, -1, 1].isnan().any()


def test_infinity_in_an_input_does_not_hang():
    inputs = make(T=40)
    inputs["v"] = inputs["v"].clone()
    inputs["v"][0, 3, 0, 0] = float("inf")
    y, _ = lattice.scan(**inputs)
    assert torch.isfinite(y[:, :3]).all() and not torch.isfinite(y[0, 3:, 0]).all()
