"""lattice.hf on a GPU that is not there: whole transformers models forward on fake tensors of its device."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

pytest.importorskip("transformers")

import fake_gpu  # noqa: E402
import lattice  # noqa: E402
import lattice.hf  # noqa: E402

fake_gpu.prepare()
MEMORIES = [memory["name"] for memory in lattice.memories()]


def model_of(memory):
    config = lattice.hf.LatticeConfig(vocab_size=61, layers=2, width=32, heads=2, mixer=memory)
    return lattice.hf.LatticeForCausalLM(config).eval()


def to_gpu(model):
    """Parameters and buffers as fake tensors of a GPU."""
    return {name: torch.empty_like(value, device="cuda") for name, value in (*model.named_parameters(), *model.named_buffers())}


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_model_runs_on_a_gpu_without_a_change(memory):
    model = model_of(memory)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        parameters = to_gpu(model)
        call = lambda *args, **keys: torch.func.functional_call(model, parameters, args, keys)  # noqa: E731
        ids = torch.empty(2, 40, dtype=torch.int64, device="cuda")
        out = call(ids, labels=ids, use_cache=True)
        assert out.logits.device.type == "cuda" and out.logits.shape == (2, 40, 61) and out.loss.device.type == "cuda"
        next_ = call(ids[:, :1], past_key_values=out.past_key_values, use_cache=True)
        assert next_.logits.device.type == "cuda" and next_.logits.shape == (2, 1, 61)
