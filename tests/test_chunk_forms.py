"""lattice.scan with method linear1 and linear2: golden vectors, the loop, the matrix form, and the exact step."""

import numpy as np
import pytest
import torch

import golden_files
import lattice
from chunk_forms import METHODS, NORMALIZE, assert_close, matrix_scan
from oracle.chunk_loop import chunk_loop
from oracle.chunk_ref import chunk_forward
from scan_inputs import OBJECTIVES, gradients, make, slice_time

GOLDEN = golden_files.names("linear")
FORMS = [dict(method=m, objective=o, normalize=n) for m in METHODS for o in OBJECTIVES for n in NORMALIZE]


def name_of(form):
    return "-".join(form.values())


@pytest.mark.parametrize("scan", [lattice.scan, matrix_scan], ids=["scan", "matrix"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name, dtype, scan):
    g = golden_files.load(name)
    leaves = {key: g.leaf(key, dtype) for key in ("Q", "K", "V", "gamma", "mu", "S0")}
    y, state = scan(leaves["Q"], leaves["K"], leaves["V"], leaves["gamma"], leaves["mu"], leaves["S0"],
                    objective=g.meta["objective"], normalize=g.meta["normalize"], method=g.meta["method"],
                    chunk=g.meta["chunk"])
    g.judge("Y", y, dtype)
    g.judge("S_final", state, dtype)
    wanted = [key for key in g.tensors if key in golden_files.GRADIENT_OF]
    grads = torch.autograd.grad((y, state), [leaves[golden_files.GRADIENT_OF[key]] for key in wanted],
                                (g.cotangent("dY", dtype), g.cotangent("dS_final", dtype)))
    for key, value in zip(wanted, grads):
        g.judge(key, value, dtype)


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_the_loop_is_the_oracle(form):
    x = make(T=11)
    want = chunk_forward(*(x[name].numpy() for name in ("state", "k", "v", "q", "gamma", "mu")), chunk=4, **form)
    for a, b in zip(chunk_loop(**x, chunk=4, **form), want):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk,T", [(1, 5), (3, 10), (4, 4), (5, 64), (16, 100), (64, 70), (80, 200), (256, 37)])
@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_equals_the_loop(form, chunk, T):
    """Both implementations, outputs and gradients, in float64."""
    x = make(B=2, T=T, H=2, M=5, D=7, seed=chunk)
    want = gradients(chunk_loop, x, chunk=chunk, **form)
    assert_close(gradients(lattice.scan, x, chunk=chunk, **form), want, 1e-10, "scan")
    assert_close(gradients(matrix_scan, x, chunk=chunk, **form), want, 1e-10, "matrix")


@pytest.mark.parametrize("M,D", [(1, 3), (16, 16), (33, 20), (8, 130), (64, 64)])
@pytest.mark.parametrize("method", METHODS)
def test_other_shapes(method, M, D):
    x = make(B=1, T=40, H=3, M=M, D=D, mu=M % 2 == 0)
    want = gradients(chunk_loop, x, chunk=32, method=method)
    assert_close(gradients(lattice.scan, x, chunk=32, method=method), want, 1e-10)


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_float32_of_a_layer(form):
    # Values of length one, since Enc is chaotic with longer ones; slots that only decay become too short to stand on.
    x = make(B=1, T=130, H=2, M=64, D=64, mu=form["normalize"] != "none")
    x["v"] /= 8.0
    want = gradients(chunk_loop, x, chunk=64, **form)
    assert_close(gradients(lattice.scan, {name: t.float() for name, t in x.items()}, chunk=64, **form), want, 1e-4)


@pytest.mark.parametrize("normalize", ["token", "none"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", METHODS)
def test_a_chunk_of_one_token_is_the_exact_step(method, objective, normalize):
    x = make(T=20)
    options = dict(objective=objective, normalize=normalize)
    assert_close(gradients(lattice.scan, x, method=method, chunk=1, **options),
                 gradients(lattice.scan, x, **options), 1e-10)


def hard_gates(x, kind):
    """Inputs whose gates of linear2, mu beta + R, are as the name says."""
    if kind == "tiny":
        x["mu"][:] = 1e-6
        x["gamma"][:] *= 1e-3
    elif kind == "zero":
        x["mu"][:, ::3] = 0.0
    elif kind == "negative":
        x["k"] *= -3.0
    elif kind == "large":
        x["mu"][:] = 1.5
    return x


@pytest.mark.parametrize("scan", [lattice.scan, matrix_scan], ids=["scan", "matrix"])
@pytest.mark.parametrize("kind", ["tiny", "zero", "negative", "large"])
@pytest.mark.parametrize("method", METHODS)
def test_hard_gates_in_float32(method, kind, scan):
    """Over 64 tokens; normalize none, so that the gates are what they are."""
    x = hard_gates(make(B=1, T=64, H=2, M=16, D=16), kind)
    options = dict(method=method, chunk=64, normalize="none")
    with torch.no_grad():
        want = chunk_loop(**x, **options)
        got = scan(**{name: t.float() for name, t in x.items()}, **options)
    for a, b in zip(got, want):
        assert torch.isfinite(a).all()
        assert (a.double() - b).abs().max() <= 1e-5 * b.abs().max().clamp_min(1.0)


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", METHODS)
def test_gradcheck(method, objective, normalize):
    x = make(B=1, T=7, H=1, M=3, D=2)
    names = list(x)

    def scan(*args):
        return lattice.scan(**dict(zip(names, args)), method=method, chunk=4, objective=objective, normalize=normalize)

    assert torch.autograd.gradcheck(scan, [t.requires_grad_() for t in x.values()], eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("chunk", [4, 48, 128])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_splits_at_chunk_boundaries_are_bit_equal(method, dtype, chunk):
    x = make(B=2, T=3 * chunk + 2, H=3, M=20, D=12, dtype=dtype)
    y, state = lattice.scan(**x, method=method, chunk=chunk)
    parts, S = [], x["state"]
    for start, stop in ((0, chunk), (chunk, 3 * chunk), (3 * chunk, 3 * chunk + 2)):
        part, S = lattice.scan(**slice_time(x, start, stop, S), method=method, chunk=chunk)
        parts.append(part)
    assert torch.equal(y, torch.cat(parts, 1)) and torch.equal(state, S)


@pytest.mark.parametrize("scan", [lattice.scan, matrix_scan], ids=["scan", "matrix"])
@pytest.mark.parametrize("method", METHODS)
def test_packed_sequences(method, scan):
    bounds = [0, 7, 7, 40, 41]
    x = make(B=1, T=41, sequences=4)
    got = gradients(scan, x, method=method, chunk=8, cu_seqlens=torch.tensor(bounds))

    def one_by_one(**inputs):
        parts = []
        for n, (begin, end) in enumerate(zip(bounds, bounds[1:])):
            part = slice_time(inputs, begin, end, inputs["state"][n:n + 1])
            parts.append(lattice.scan(**part, method=method, chunk=8) if end > begin else (part["v"], part["state"]))
        return torch.cat([y for y, _ in parts], 1), torch.cat([state for _, state in parts])

    assert_close(got, gradients(one_by_one, x), 1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    x = make(B=2, T=150, H=5, M=16, D=16, dtype=torch.float32)
    threads, runs = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            runs.append(gradients(lattice.scan, x, method="linear2", chunk=64))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(runs[0][0], runs[1][0])
    for name in x:
        assert torch.equal(runs[0][2][name], runs[1][2][name])


@pytest.mark.parametrize("method", METHODS)
def test_bfloat16_inputs_beside_a_float32_state(method):
    x = make(T=50, H=2, M=16, D=16, dtype=torch.float32)
    half = {name: t if name == "state" else t.bfloat16() for name, t in x.items()}
    y, state, grads = gradients(lattice.scan, half, method=method, chunk=16)
    y_full, state_full = lattice.scan(**{name: t.float() for name, t in half.items()}, method=method, chunk=16)
    assert y.dtype == torch.bfloat16 and state.dtype == torch.float32
    torch.testing.assert_close(y.float(), y_full, rtol=2**-8, atol=1e-6)
    torch.testing.assert_close(state, state_full)
    for name, g in grads.items():
        assert g.dtype == half[name].dtype and torch.isfinite(g).all()


def test_views_that_are_not_contiguous():
    x = make(T=40)
    strided = {name: t.transpose(1, 2).contiguous().transpose(1, 2) for name, t in x.items()}
    want = gradients(lattice.scan, x, method="linear2", chunk=16)
    assert_close(gradients(lattice.scan, strided, method="linear2", chunk=16), want, 1e-14)
