"""What every rule of lattice.rules() must do. A new rule gets these tests by its entry in oracle/rules_ref.py."""

import pytest
import torch

import lattice
from oracle.rules_ref import GATES, WIDE_MU
from rule_inputs import RECURRENT, RULES, gradients, make, make_state, pack, slice_time, unpack

DTYPES = [torch.float32, torch.float64]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def test_every_rule_is_tested():
    assert sorted(lattice.rules()) == sorted(RULES)


def test_descriptions_say_what_the_oracle_says():
    for memory in lattice.memories():
        if memory["objective"]:
            assert [gate["name"] for gate in memory["gates"]] == ["gamma", "mu", "lam"] and not memory["zero_state"]
            continue
        rule = memory["recur_name"]
        assert tuple(gate["name"] for gate in memory["gates"]) == GATES[rule]
        for gate in memory["gates"]:
            assert gate["required"] and gate["per_slot"] == (gate["name"] == "mu" and rule in WIDE_MU)
        assert 1 + len(memory["beside"]) == (1 if memory["attention"] else len(make_state(rule)))


@pytest.mark.parametrize("rule", RULES)
def test_gradcheck(rule):
    inputs = make(rule, B=1, T=7, H=1, M=3, D=5)
    names, state = list(inputs), make_state(rule, B=1, H=1, M=3, D=5, past=2)
    leaves = [x.requires_grad_() for x in (*inputs.values(), *state)]

    def recur(*args):
        y, out = lattice.recur(rule, **dict(zip(names, args)), state=pack(rule, args[len(names):]))
        return (y, *unpack(out))

    assert torch.autograd.gradcheck(recur, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("rule", RECURRENT)
def test_gradcheck_cu_seqlens(rule):
    inputs = make(rule, B=1, T=7, H=1, M=3, D=5)
    names, state = list(inputs), make_state(rule, B=3, H=1, M=3, D=5)
    leaves = [x.requires_grad_() for x in (*inputs.values(), *state)]
    bounds = torch.tensor([0, 2, 6, 7])

    def recur(*args):
        y, out = lattice.recur(rule, **dict(zip(names, args)), state=pack(rule, args[len(names):]), cu_seqlens=bounds)
        return (y, *unpack(out))

    assert torch.autograd.gradcheck(recur, leaves, eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_past_does_not_see_the_future(rule, dtype):
    inputs, other = make(rule, T=51, dtype=dtype), make(rule, T=51, dtype=dtype, seed=9)
    y, _ = lattice.recur(rule, **inputs)
    for t in (1, 32, 50):
        changed = {name: torch.cat([x[:, :t], other[name][:, t:]], 1) for name, x in inputs.items()}
        y_changed, _ = lattice.recur(rule, **changed)
        assert torch.equal(y[:, :t], y_changed[:, :t])
        assert not torch.equal(y[:, t], y_changed[:, t])


@pytest.mark.parametrize("rule", RECURRENT)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_split_anywhere_is_the_whole_bit_for_bit(rule, dtype):
    """The state out is a snapshot: copied, kept aside and fed in later it continues the same sequence."""
    inputs = make(rule, B=1, T=70, H=3, M=7, D=19, dtype=dtype)
    start = pack(rule, make_state(rule, B=1, H=3, M=7, D=19, dtype=dtype))
    y, end = lattice.recur(rule, **inputs, state=start)
    for cut in (1, 31, 32, 33, 69):
        y0, mid = lattice.recur(rule, **slice_time(inputs, 0, cut), state=start)
        snapshot = pack(rule, [x.clone() for x in unpack(mid)])
        lattice.recur(rule, **slice_time(inputs, 0, cut), state=mid)
        y1, last = lattice.recur(rule, **slice_time(inputs, cut, 70), state=snapshot)
        assert torch.equal(torch.cat([y0, y1], 1), y), f"cut at {cut}"
        assert same(unpack(last), unpack(end)), f"cut at {cut}"


@pytest.mark.parametrize("dtype,tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str)
def test_softmax_attention_continues_from_its_cache(dtype, tolerance):
    """torch's attention picks its blocking by the length, so a split is equal but for rounding."""
    inputs = make("softmax_attention", T=40, dtype=dtype)
    y, (keys, values) = lattice.recur("softmax_attention", **inputs)
    state, steps = None, []
    for t in range(40):
        step, state = lattice.recur("softmax_attention", **slice_time(inputs, t, t + 1), state=state)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, 1), y, rtol=tolerance, atol=tolerance)
    assert torch.equal(state[0], keys) and torch.equal(state[1], values)


@pytest.mark.parametrize("rule", RECURRENT)
def test_steps_of_one_token_are_the_whole_bit_for_bit(rule):
    inputs = make(rule, T=40, M=16, D=16, dtype=torch.float32)
    y, end = lattice.recur(rule, **inputs)
    state, steps = None, []
    for t in range(40):
        step, state = lattice.recur(rule, **slice_time(inputs, t, t + 1), state=state)
        steps.append(step)
    assert torch.equal(torch.cat(steps, 1), y) and same(unpack(state), unpack(end))


@pytest.mark.parametrize("rule", RECURRENT)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_packed_sequences_are_the_separate_ones_bit_for_bit(rule, dtype):
    bounds = [0, 5, 5, 38, 40]
    inputs = make(rule, B=1, T=40, dtype=dtype)
    state = make_state(rule, B=4, dtype=dtype)
    y, out = lattice.recur(rule, **inputs, state=pack(rule, state), cu_seqlens=torch.tensor(bounds))
    for n, (start, stop) in enumerate(zip(bounds, bounds[1:])):
        mine = [x[n : n + 1] for x in state]
        if start < stop:
            y_n, out_n = lattice.recur(rule, **slice_time(inputs, start, stop), state=pack(rule, mine))
            assert torch.equal(y[:, start:stop], y_n)
            mine = unpack(out_n)
        assert same([x[n : n + 1] for x in unpack(out)], mine)


def test_packed_softmax_attention_sees_its_own_sequence_only():
    bounds = [0, 5, 5, 38, 40]
    inputs = make("softmax_attention", B=1, T=40)
    y, _ = lattice.recur("softmax_attention", **inputs, cu_seqlens=torch.tensor(bounds))
    for start, stop in zip(bounds, bounds[1:]):
        if start < stop:
            y_n, _ = lattice.recur("softmax_attention", **slice_time(inputs, start, stop))
            torch.testing.assert_close(y[:, start:stop], y_n, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", RECURRENT)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_number_of_threads_is_bit_equal(rule, dtype):
    inputs = make(rule, B=3, T=70, H=5, M=9, D=21, dtype=dtype)
    state = make_state(rule, B=3, H=5, M=9, D=21, dtype=dtype)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        y, out, grads = gradients(lattice.recur, rule, inputs, state)
        for count in (2, 3, 8):
            torch.set_num_threads(count)
            y_n, out_n, grads_n = gradients(lattice.recur, rule, inputs, state)
            assert torch.equal(y, y_n) and same(out, out_n)
            assert all(torch.equal(grads[name], grads_n[name]) for name in grads)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("rule", RULES)
def test_views_work(rule):
    inputs = make(rule, T=40, M=8, D=8)
    views = {name: x.transpose(1, 2).contiguous().transpose(1, 2) for name, x in inputs.items()}
    views["v"] = torch.cat([views["v"], views["v"]], -1)[..., :8]
    y, out, grads = gradients(lattice.recur, rule, inputs)
    y_view, out_view = lattice.recur(rule, **views)
    torch.testing.assert_close(y_view, y, rtol=1e-12, atol=1e-12)
    for a, b in zip(out, unpack(out_view), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_every_element_of_the_outputs_is_written(rule):
    """torch.empty filled with NaN by torch itself: nothing may shine through."""
    inputs, state = make(rule, T=70, M=7, D=19), make_state(rule, M=7, D=19)
    clean = gradients(lattice.recur, rule, inputs, state)
    try:
        torch.use_deterministic_algorithms(True)
        assert torch.empty(8).isnan().all()
        y, out, grads = gradients(lattice.recur, rule, inputs, state)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(y, clean[0]) and same(out, clean[1])
    assert all(torch.equal(grads[name], clean[2][name]) for name in grads)
    assert all(torch.isfinite(x).all() for x in (y, *out, *grads.values()))


@pytest.mark.parametrize("rule", RECURRENT)
def test_nan_in_a_value_stays_in_its_head_and_its_future(rule):
    inputs = make(rule, T=40)
    clean, _ = lattice.recur(rule, **inputs)
    inputs["v"] = inputs["v"].clone()
    inputs["v"][1, 20, 1] = float("nan")
    y, _ = lattice.recur(rule, **inputs)
    assert y[1, 20, 1].isnan().any() and y[1, -1, 1].isnan().any()
    assert torch.equal(y[0], clean[0]) and torch.equal(y[:, :, 0], clean[:, :, 0])
    assert torch.equal(y[1, :20, 1], clean[1, :20, 1])


@pytest.mark.parametrize("rule", RULES)
def test_meta_tensors_give_shapes_without_data(rule):
    inputs = {name: x.to("meta") for name, x in make(rule, dtype=torch.float32).items()}
    y, out = lattice.recur(rule, **inputs)
    real = lattice.recur(rule, **make(rule, dtype=torch.float32))
    assert y.is_meta and y.shape == real[0].shape and y.dtype == torch.float32
    assert [x.shape for x in unpack(out)] == [x.shape for x in unpack(real[1])]


@pytest.mark.parametrize("rule", RULES)
def test_compile_sees_one_graph(rule):
    torch._dynamo.reset()  # each rule is one more recompilation of the same function; the limit is 8
    inputs, state = make(rule, T=20), make_state(rule)
    compiled = torch.compile(lattice.recur, backend="aot_eager", fullgraph=True)
    eager = gradients(lattice.recur, rule, inputs, state)
    traced = gradients(compiled, rule, inputs, state)
    assert torch.equal(eager[0], traced[0]) and same(eager[1], traced[1])
    assert all(torch.equal(eager[2][name], traced[2][name]) for name in eager[2])
