"""Every operator on tensors of a GPU, without one: fake tensors have a GPU's device, shapes and no values. Results are on
the GPU; tensors of two devices, and what has no kernel, are refused in one sentence."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

import fake_gpu
import lattice
import rule_inputs
import scan_inputs
from test_nn_ops import CASES as LAYERS

fake_gpu.prepare()
ops = torch.ops.lattice
CHUNKED = dict(method="linear2", chunk=4)
# They make tensors of texts, and read or write files by way of the host.
OF_FILES = {"initial_tensors", "rope_rates", "load_weights", "save_model"}
# An argument that may be elsewhere: it is fetched.
ELSEWHERE = {"rotate": {2}, "causal_conv": {4}, "unit_convs": {8}, "queries_and_keys": {9}}


def recurrences():
    """(name, operator, positional arguments, keywords)"""
    x = scan_inputs.make(lam=True, dtype=torch.float32)
    tensors = [x[name] for name in ("q", "k", "v", "gamma", "mu", "state")]
    yield "scan", ops.scan, tensors, {}
    yield "scan with shrinkage", ops.scan, [*tensors, x["lam"]], {}
    for keys in (dict(CHUNKED, method="linear1"), CHUNKED, dict(CHUNKED, sweeps=2), dict(CHUNKED, normalize="chunk")):
        yield f"scan {keys}", ops.scan, tensors, keys
    packed = scan_inputs.make(B=1, T=9, sequences=2, dtype=torch.float32)
    tensors = [packed[name] for name in ("q", "k", "v", "gamma", "mu", "state")]
    yield "scan packed", ops.scan, [*tensors, None, torch.tensor([0, 4, 9])], {}
    for rule in rule_inputs.RECURRENT:
        x = rule_inputs.make(rule, dtype=torch.float32)
        names = ("q", "k", "v", "gamma", "mu", "igate", "fgate")
        yield f"recur {rule}", ops.recur, [rule, *(x.get(name) for name in names)], {}
        if rule in ops.chunked_rules():
            yield f"recur_chunked {rule}", ops.recur_chunked, [rule, *(x.get(name) for name in names[:5])], {}
    x = rule_inputs.make("gla", dtype=torch.float32)
    yield "recur_with", ops.recur_with, ["gla", x["q"], x["k"], x["v"], [x["mu"]]], {}
    x = rule_inputs.make("softmax_attention", dtype=torch.float32)
    past = rule_inputs.make_state("softmax_attention", dtype=torch.float32)
    keep = torch.ones(2, 12, dtype=torch.bool)
    yield "attention", ops.attention, [x["q"], x["k"], x["v"], *past, None, keep], {}


CASES = {name: (op, list(args), {}) for name, (op, args) in LAYERS.items()}
CASES |= {name: (op, args, keys) for name, op, args, keys in recurrences()}


def operator_of(name):
    return CASES[name][0]._qualified_op_name.removeprefix("lattice::")


def on(device, args):
    return pytree.tree_map_only(torch.Tensor, lambda x: torch.empty_like(x, device=device), args)


def public_operators_of_tensors():
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("lattice::")
        if name != schema.name and not name.startswith("_") and any("Tensor" in str(x.type) for x in schema.arguments):
            yield name


def test_every_operator_of_tensors_is_here():
    assert set(public_operators_of_tensors()) - OF_FILES == {operator_of(name) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_results_are_on_the_gpu(name):
    op, args, keys = CASES[name]
    with FakeTensorMode(allow_non_fake_inputs=True):
        want = op(*on("meta", args), **keys)
        got = op(*on("cuda", args), **keys)
        for x, y in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True):
            assert x.device.type == "cuda" and x.shape == y.shape and x.dtype == y.dtype


@pytest.mark.parametrize("name", CASES)
def test_tensors_of_two_devices_are_refused(name):
    """Each tensor in turn is left on the CPU; the sentence is ours, not one of an operator inside."""
    op, args, keys = CASES[name]
    leaves, spec = pytree.tree_flatten(args)
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    if len(tensors) == 1:
        return
    for i in set(tensors) - ELSEWHERE.get(operator_of(name), set()):
        with FakeTensorMode(allow_non_fake_inputs=True):
            mixed = [x if not isinstance(x, torch.Tensor) else torch.empty_like(x, device="cpu" if i == j else "cuda")
                     for j, x in enumerate(leaves)]
            with pytest.raises(ValueError, match=r"^\[\w+\] .* on (cpu|cuda:0).*; move them to one device"):
                op(*pytree.tree_unflatten(mixed, spec), **keys)


# What reads numbers from memory itself has kernels for the CPU, and no implementation that other devices would fall into.
@pytest.mark.parametrize("name", ["_row_norm", "_causal_conv", "_unit_convs", "_gated_layer_norm", "_silu_times", "_projections"])
def test_kernels_of_the_cpu_are_not_those_of_other_devices(name):
    for operator in (f"lattice::{name}", f"lattice::{name}_backward"):
        has = lambda key: torch._C._dispatch_has_kernel_for_dispatch_key(operator, key)  # noqa: B023, E731
        assert has("CPU") and not any(has(key) for key in ("CUDA", "CompositeImplicitAutograd", "CompositeExplicitAutograd"))


@pytest.mark.parametrize("key", ["CUDA", "XPU", "MPS"])
def test_the_recurrence_is_registered_where_it_can_answer(key):
    for name in ("lattice::_forward", "lattice::_backward"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key), name


def test_a_type_that_no_kernel_knows_is_said():
    x = scan_inputs.make(dtype=torch.float32)
    with FakeTensorMode(allow_non_fake_inputs=True):
        gpu = {name: torch.empty_like(value, device="cuda") for name, value in x.items()}
        with pytest.raises(TypeError, match=r"\[scan\] state is Half; it must be float32 or float64"):
            lattice.scan(**dict(gpu, state=gpu["state"].half()))
        with pytest.raises(TypeError, match=r"\[scan\] q is Half but state is Float; use one type, or bfloat16 inputs"):
            lattice.scan(**dict(gpu, q=gpu["q"].half()))


FORMS = [CHUNKED, dict(CHUNKED, method="linear1"), dict(CHUNKED, sweeps=2)]


def on_a_gpu():
    return {name: torch.empty_like(value, device="cuda") for name, value in scan_inputs.make(dtype=torch.float32).items()}


def targets(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function" and "getitem" not in str(node.target)]


@pytest.mark.parametrize("keys", FORMS, ids=str)
def test_chunk_forms_compile_for_a_gpu(keys):
    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True):
        compiled = torch.compile(lambda **x: lattice.scan(**x, **keys), backend="aot_eager", fullgraph=True)
        assert all(out.device.type == "cuda" for out in compiled(**on_a_gpu()))
        (called,) = [node for node in make_fx(lambda x: lattice.scan(**x, **keys))(on_a_gpu()).graph.nodes
                     if "_chunk_forward" in str(node.target)]
        *_, kernels, keep = called.args
        assert not kernels and not keep, "the CPU's kernels would compute a GPU's tensors"


# Sweeps go on until the numbers say that they may end, and fake tensors have none.
@pytest.mark.parametrize("keys", FORMS[:2], ids=str)
def test_chunk_forms_are_products_of_matrices_on_a_gpu(keys):
    def run(x):
        return ops._chunk_matrix("dec", "token", keys["method"], keys["chunk"], keys.get("sweeps", 1), None, x["q"], x["k"], x["v"],
                                 x["gamma"], x["mu"], x["state"], None)

    with FakeTensorMode(allow_non_fake_inputs=True):
        called = targets(make_fx(run)(on_a_gpu()))
        assert all(out.device.type == "cuda" for out in run(on_a_gpu()))
    assert any("mm" in name for name in called) and all(name.startswith("aten.") for name in called)
