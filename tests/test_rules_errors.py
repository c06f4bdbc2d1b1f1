"""Bad input of lattice.recur: which rule, which argument, expected and got; a wrong gate lists the gates there are."""

import pytest
import torch

import lattice
from oracle.rules_ref import GATES, WIDE_MU
from rule_inputs import RECURRENT, RULES, make, make_state, pack

ERRORS = (RuntimeError, ValueError, TypeError)
ALL_GATES = ("gamma", "mu", "igate", "fgate")


def refuse(words, rule, inputs, **options):
    with pytest.raises(ERRORS) as caught:
        lattice.recur(rule, **inputs, **options)
    message = str(caught.value)
    assert "[recur]" in message, message
    for word in words:
        assert str(word) in message, f"{word!r} is not in: {message}"


def test_unknown_rule_lists_the_valid_ones():
    refuse(["deltanets", *RULES], "deltanets", make("deltanet"))


@pytest.mark.parametrize("rule", RULES)
def test_gate_that_the_rule_does_not_take(rule):
    inputs = make(rule)
    for gate in ALL_GATES:
        if gate not in GATES[rule]:
            refuse([rule, gate, *GATES[rule]], rule, dict(inputs, **{gate: torch.ones(2, 9, 2, dtype=torch.float64)}))


@pytest.mark.parametrize("rule", [rule for rule in RULES if GATES[rule]])
def test_gate_that_is_missing(rule):
    inputs = make(rule)
    for gate in GATES[rule]:
        refuse([rule, *GATES[rule]], rule, {name: x for name, x in inputs.items() if name != gate})


@pytest.mark.parametrize("rule", [rule for rule in RULES if GATES[rule]])
def test_gate_of_the_wrong_shape(rule):
    inputs = make(rule)
    for gate in GATES[rule]:
        wide = gate == "mu" and rule in WIDE_MU
        wrong = torch.ones(2, 9, 2, dtype=torch.float64) if wide else torch.ones(2, 9, 2, 4, dtype=torch.float64)
        refuse([rule, gate], rule, dict(inputs, **{gate: wrong}))
        refuse([gate], rule, dict(inputs, **{gate: inputs[gate][:, :8]}))


@pytest.mark.parametrize("rule", RULES)
def test_shapes_that_do_not_fit(rule):
    inputs = make(rule)
    refuse(["k"], rule, dict(inputs, k=inputs["k"][..., :3]))
    refuse(["v"], rule, dict(inputs, v=inputs["v"][:, :, :1]))
    refuse(["q"], rule, dict(inputs, q=inputs["q"][0]))


@pytest.mark.parametrize("rule", RULES)
def test_no_tokens(rule):
    refuse(["T"], rule, {name: x[:, :0] for name, x in make(rule).items()})


@pytest.mark.parametrize("rule", RULES)
def test_state_that_does_not_fit(rule):
    inputs = make(rule)
    refuse(["state"], rule, inputs, state=pack(rule, make_state(rule, D=5)))
    refuse(["state"], rule, inputs, state=pack(rule, make_state(rule, H=3)))
    refuse(["state"], rule, inputs, state=pack(rule, make_state(rule, dtype=torch.float32)))


@pytest.mark.parametrize("rule", ["mlstm", "softmax_attention"])
def test_state_of_several_tensors_must_be_whole(rule):
    inputs, state = make(rule), make_state(rule)
    refuse([rule, "state", "tuple"], rule, inputs, state=state[:-1])
    refuse([rule, "state", "tuple"], rule, inputs, state=state[0])


@pytest.mark.parametrize("rule", RECURRENT)
def test_wrong_bounds(rule):
    inputs = make(rule, B=1)
    for bounds in ([1, 4, 9], [0, 5, 4, 9], [0, 4, 8], [0, 4, 10]):
        refuse(["cu_seqlens"], rule, inputs, cu_seqlens=torch.tensor(bounds))


@pytest.mark.parametrize("rule", RULES)
def test_dtypes_and_devices(rule):
    inputs, state = make(rule), pack(rule, make_state(rule))
    for name, x in inputs.items():
        refuse([name], rule, dict(inputs, **{name: x.float()}), state=state)
        refuse([name, "meta", "cpu"], rule, dict(inputs, **{name: x.to("meta")}), state=state)
    refuse(["q"], rule, {name: x.long() for name, x in inputs.items()})
