"""Bad input of lattice.scan: the error names the argument, what was expected and what was got, and touches nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lattice
from scan_inputs import make

ERRORS = (RuntimeError, ValueError, TypeError)


def refuse(words, inputs, **options):
    """The call fails with a message that starts with [scan] and has every word in it."""
    copies = {name: x.clone() for name, x in inputs.items() if isinstance(x, torch.Tensor) and x.device.type == "cpu"}
    with pytest.raises(ERRORS) as caught:
        lattice.scan(**inputs, **options)
    message = str(caught.value)
    assert "[scan]" in message, message
    for word in words:
        assert re.search(rf"(?<!\w){re.escape(str(word))}(?!\w)", message), f"{word!r} is not in: {message}"
    for name, x in copies.items():
        assert torch.equal(inputs[name], x)


def zeros(*shape, dtype=torch.float64):
    return torch.zeros(*shape, dtype=dtype)


SHAPES = {
    "q of rank 3": (dict(q=zeros(2, 9, 4)), ["q", "[B,T,H,M]", "[2,9,4]"]),
    "k of rank 5": (dict(k=zeros(2, 9, 2, 4, 1)), ["k", "[B,T,H,M]", "[2,9,2,4,1]"]),
    "v of rank 3": (dict(v=zeros(2, 9, 6)), ["v", "[B,T,H,D]", "[2,9,6]"]),
    "gamma of rank 4": (dict(gamma=zeros(2, 9, 2, 1)), ["gamma", "[B,T,H]", "[2,9,2,1]"]),
    "mu of rank 2": (dict(mu=zeros(2, 9)), ["mu", "[B,T,H]", "[2,9]"]),
    "lam of rank 1": (dict(lam=zeros(9)), ["lam", "[B,T,H]", "[9]"]),
    "state of rank 3": (dict(state=zeros(2, 4, 6)), ["state", "[B,H,M,D]", "[2,4,6]"]),
    "k with other slots": (dict(k=zeros(2, 9, 2, 5)), ["k", 5, 4]),
    "k with other time": (dict(k=zeros(2, 8, 2, 4)), ["k", 8, 9]),
    "k with other heads": (dict(k=zeros(2, 9, 3, 4)), ["k", 3, 2]),
    "v with other heads": (dict(v=zeros(2, 9, 3, 6)), ["v", 3, 2]),
    "v with other batch": (dict(v=zeros(1, 9, 2, 6)), ["v", 1, 2]),
    "gamma with other heads": (dict(gamma=zeros(2, 9, 3)), ["gamma", 3, 2]),
    "mu with other time": (dict(mu=zeros(2, 7, 2)), ["mu", 7, 9]),
    "lam with other batch": (dict(lam=zeros(3, 9, 2)), ["lam", 3, 2]),
    "state with other batch": (dict(state=zeros(3, 2, 4, 6)), ["state", 3, 2]),
    "state with other heads": (dict(state=zeros(2, 1, 4, 6)), ["state", 1, 2]),
    "state with other slots": (dict(state=zeros(2, 2, 5, 6)), ["state", 5, 4]),
    "state with other width": (dict(state=zeros(2, 2, 4, 7)), ["state", 7, 6]),
}


@pytest.mark.parametrize("change,words", SHAPES.values(), ids=SHAPES.keys())
def test_wrong_shape(change, words):
    refuse(words, dict(make(), **change))


def test_missing_state_says_what_to_pass():
    inputs = make()
    del inputs["state"]
    refuse(["state", "[B,H,M,D]"], inputs)
    refuse(["state"], dict(inputs, state=None))


def test_no_tokens():
    inputs = make()
    empty = {name: x if name == "state" else x[:, :0] for name, x in inputs.items()}
    refuse(["T", 0], empty)


@pytest.mark.parametrize("letter", ["B", "H", "M", "D"])
def test_a_size_of_zero(letter):
    B, T, H, M, D = (0 if name == letter else size for name, size in dict(B=2, T=9, H=2, M=4, D=6).items())
    refuse(["at least 1", f"[{B},{T},{H},{M}]", f"[{B},{T},{H},{D}]"],
           dict(q=zeros(B, T, H, M), k=zeros(B, T, H, M), v=zeros(B, T, H, D), gamma=zeros(B, T, H),
                state=zeros(B, H, M, D)))


@pytest.mark.parametrize("options,words", [
    (dict(objective="dek"), ["objective", "dek", "dec", "enc", "sim"]),
    (dict(objective=""), ["objective", "dec", "enc", "sim"]),
    (dict(method="exakt"), ["method", "exakt", "exact"]),
    (dict(normalize="row"), ["normalize", "row", "token", "none"]),
])
def test_unknown_option_lists_the_valid_ones(options, words):
    refuse(words, make(), **options)


@pytest.mark.parametrize("options,word", [
    (dict(normalize="chunk"), "chunk"),
    (dict(chunk=4), "chunk"),
    (dict(chunk=0), "chunk"),
    (dict(sweeps=2), "sweeps"),
    (dict(sweeps=0), "sweeps"),
])
def test_options_that_the_exact_method_does_not_take(options, word):
    refuse([word], make(), **options)


@pytest.mark.parametrize("name", ["q", "k", "v", "gamma", "mu", "lam", "state"])
def test_mixed_dtypes(name):
    inputs = make(lam=True)
    refuse([name], dict(inputs, **{name: inputs[name].float()}))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float16])
def test_dtype_that_is_not_taken(dtype):
    refuse(["float32", "float64"], {name: x.to(dtype) for name, x in make().items()})


def test_bfloat16_state():
    inputs = {name: x.to(torch.bfloat16) for name, x in make().items()}
    refuse(["state", "float32"], inputs)


@pytest.mark.parametrize("name", ["q", "k", "v", "gamma", "mu", "state"])
def test_mixed_devices(name):
    inputs = make()
    refuse([name, "meta", "cpu"], dict(inputs, **{name: inputs[name].to("meta")}))


@pytest.mark.parametrize("name", ["q", "k", "v", "gamma", "state"])
def test_not_a_tensor(name):
    with pytest.raises(ERRORS, match=name):
        lattice.scan(**dict(make(), **{name: [1.0, 2.0]}))


@pytest.mark.parametrize("bounds,words", [
    ([1, 4, 9], ["cu_seqlens", 0, 1]),
    ([0, 5, 4, 9], ["cu_seqlens"]),
    ([0, 4, 8], ["cu_seqlens", 9, 8]),
    ([0, 4, 10], ["cu_seqlens", 9, 10]),
    ([-1, 4, 9], ["cu_seqlens", 0, -1]),
    ([0], ["cu_seqlens"]),
])
def test_wrong_bounds(bounds, words):
    inputs = make(B=1, sequences=max(1, len(bounds) - 1))
    refuse(words, inputs, cu_seqlens=torch.tensor(bounds))


def test_bounds_of_the_wrong_kind():
    inputs = make(B=1, sequences=2)
    refuse(["cu_seqlens"], inputs, cu_seqlens=torch.tensor([0.0, 4.0, 9.0]))
    refuse(["cu_seqlens"], inputs, cu_seqlens=torch.tensor([[0, 4, 9]]))


def test_bounds_need_one_batch_row_and_a_state_per_sequence():
    refuse(["cu_seqlens", 2], make(B=2), cu_seqlens=torch.tensor([0, 4, 9]))
    refuse(["state", 3, 2], make(B=1, sequences=3), cu_seqlens=torch.tensor([0, 4, 9]))


OVERFLOW = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
sys.path.insert(0, {python!r})
import torch, lattice
one = torch.zeros(1, dtype=torch.float64)
for B, T, H, M, D in {sizes}:
    try:
        lattice.scan(one.expand(B, T, H, M), one.expand(B, T, H, M), one.expand(B, T, H, D), one.expand(B, T, H),
                     state=one.expand(B, H, M, D))
    except Exception as error:
        print(" ".join(str(error).split()))
"""


def test_sizes_whose_product_overflows():
    """Expanded views that ask for 2^63 bytes and more without holding them: refused before anything is allocated."""
    sizes = [(2**20, 2**20, 2**14, 2**6, 2**6), (2**30, 2**30, 1, 1, 1), (1, 2**30, 1, 2**30, 2**30)]
    script = OVERFLOW.format(python=str(Path(__file__).resolve().parent.parent / "python"), sizes=sizes)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    messages = done.stdout.splitlines()
    assert len(messages) == len(sizes)
    for message in messages:
        assert re.search(r"\[scan\].*(overflow|too large)", message), message


def test_method_that_is_not_built_says_so():
    for method in ("linear1", "linear2"):
        try:
            lattice.scan(**make(), method=method, chunk=4)
        except ERRORS as error:
            assert "[scan]" in str(error) and method in str(error)
