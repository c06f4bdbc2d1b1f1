"""lattice.nn: texts split, packed and padded; types; checkpoints; what a layer is to torch."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from nn_models import MEMORIES, OPTIONS, RECURRENT, SMALL, small_model, tokens_of

import lattice
import lattice.nn as lnn

# Matrix products of other shapes round differently; the operators themselves change no bit.
TIGHT = dict(rtol=2e-5, atol=2e-5)


def gradients(model, loss):
    return dict(zip(dict(model.named_parameters()), torch.autograd.grad(loss, list(model.parameters()))))


@pytest.mark.parametrize("mixer", MEMORIES)
def test_a_text_may_be_split_anywhere(mixer):
    model, tokens = small_model(mixer), tokens_of(2, 11)
    whole, end = model(tokens)
    for cuts in ((5,), (1, 2), (1,) * 10):
        states, parts, at = None, [], 0
        for size in (*cuts, 11 - sum(cuts)):
            logits, states = model(tokens[:, at:at + size], states)
            parts.append(logits)
            at += size
        torch.testing.assert_close(torch.cat(parts, 1), whole, **TIGHT)
        for a, b in zip(states, end):
            assert a.keys() == b.keys()
            for name in a:
                torch.testing.assert_close(a[name], b[name], **TIGHT)


@pytest.mark.parametrize("mixer", RECURRENT)
def test_gradients_flow_through_states(mixer):
    model, tokens = small_model(mixer), tokens_of(2, 9)
    whole = gradients(model, model(tokens)[0].square().sum())
    first, states = model(tokens[:, :4])
    second, _ = model(tokens[:, 4:], states)
    split = gradients(model, first.square().sum() + second.square().sum())
    for name in whole:
        assert (split[name] - whole[name]).norm() <= 2e-4 * whole[name].norm() + 1e-6, name


@pytest.mark.parametrize("mixer", MEMORIES)
def test_packed_texts_are_what_they_are_alone(mixer):
    model, texts = small_model(mixer, **({} if mixer == "transformer" else {"rope_period": 8})), [tokens_of(1, n, seed=n) for n in (5, 1, 7)]
    packed = torch.cat(texts, 1)
    for dtype in (torch.int64, torch.int32):
        cu = torch.tensor([0, 5, 6, 13], dtype=dtype)
        logits, states = model(packed, cu_seqlens=cu)
        for i, text in enumerate(texts):
            alone, state = model(text)
            torch.testing.assert_close(logits[:, cu[i]:cu[i + 1]], alone, **TIGHT)
            if mixer in RECURRENT:
                for block, of_text in zip(states, state):
                    for name in block:
                        torch.testing.assert_close(block[name][i:i + 1], of_text[name], **TIGHT)


@torch.no_grad()
def test_packed_texts_go_on():
    model, texts = small_model("mamba2", rope_period=8), [tokens_of(1, n, seed=n) for n in (5, 2, 7)]
    halves = [(text[:, :cut], text[:, cut:]) for text, cut in zip(texts, (2, 1, 6))]
    states = None
    for part, lengths in ((0, (2, 1, 6)), (1, (3, 1, 1))):
        cu = torch.tensor([0, *lengths]).cumsum(0)
        logits, states = model(torch.cat([half[part] for half in halves], 1), states, cu_seqlens=cu)
    for i, text in enumerate(texts):
        torch.testing.assert_close(logits[:, cu[i]:cu[i + 1]], model(text)[0][:, -(cu[i + 1] - cu[i]):], **TIGHT)


@pytest.mark.parametrize("mixer", MEMORIES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(mixer, side):
    model, lengths, T = small_model(mixer, **({} if mixer == "transformer" else {"rope_period": 8})), (4, 9, 1), 9
    texts = [tokens_of(1, n, seed=n) for n in lengths]
    mask = torch.zeros(3, T, dtype=torch.bool)
    batch = tokens_of(3, T, seed=50)
    for i, (text, n) in enumerate(zip(texts, lengths)):
        at = slice(T - n, T) if side == "left" else slice(0, n)
        mask[i, at], batch[i, at] = True, text[0]
    logits, states = model(batch, mask=mask)
    # What stands in the padding changes no bit of anything.
    other, other_states = model(torch.where(mask, batch, tokens_of(3, T, seed=51)), mask=mask)
    assert torch.equal(logits[mask], other[mask])
    for a, b in zip(states, other_states):
        for name in a.keys() - {"keys", "values"}:
            assert torch.equal(a[name], b[name]), name
    more = tokens_of(3, 2, seed=60)
    after, _ = model(more, states)
    for i, text in enumerate(texts):
        alone, state = model(text)
        torch.testing.assert_close(logits[i][mask[i]], alone[0], **TIGHT)
        torch.testing.assert_close(after[i], model(more[i:i + 1], state)[0][0], **TIGHT)


@pytest.mark.parametrize("mixer", RECURRENT)
def test_the_recurrence_of_a_padded_text_has_the_bits_of_the_text(mixer):
    """With products that do not depend on the shape, as those of one row are."""
    layer = small_model(mixer).blocks[0].mixer.double()
    x = torch.randn(1, 6, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rows = [layer(x[:, :1])[1]]
    padded = torch.cat([x[:, :1], torch.full((1, 1, 32), 7.0, dtype=torch.float64)], 1)
    _, state = layer(padded, mask=torch.tensor([[True, False]]))
    for name in state:
        torch.testing.assert_close(state[name], rows[0][name], rtol=1e-12, atol=1e-12)
    # From one and the same state a token of padding leads to the same bits.
    _, again = layer(padded[:, 1:], rows[0], mask=torch.tensor([[False]]))
    for name in again:
        assert torch.equal(again[name], rows[0][name]), name


@pytest.mark.parametrize("mixer", MEMORIES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_what_stands_in_padding_changes_no_bit_of_a_gradient(mixer, side):
    model, lengths, T = small_model(mixer), (4, 9, 1), 9
    at = torch.arange(T)
    mask = torch.stack([at >= T - n if side == "left" else at < n for n in lengths])
    batch, targets = tokens_of(3, T, seed=50), tokens_of(3, T, seed=52).masked_fill(~mask, -1)
    wanted = gradients(model, model(batch, targets=targets, mask=mask)[0])
    for seed in (53, 54):
        other = torch.where(mask, batch, tokens_of(3, T, seed=seed))
        for name, got in gradients(model, model(other, targets=targets, mask=mask)[0]).items():
            assert torch.equal(got, wanted[name]), name


@pytest.mark.parametrize("mixer", MEMORIES)
def test_padding_that_is_no_number_reaches_nothing(mixer):
    """In a layer of its own, whose input is not an embedding."""
    block = small_model(mixer).blocks[0]
    x, mask = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(1)), torch.ones(2, 6, dtype=torch.bool)
    mask[0, :3] = False
    for layer in (block, block.mixer):
        results = []
        for content in (0.0, float("nan"), float("inf")):
            leaf = x.masked_fill(~mask.unsqueeze(-1), content).requires_grad_()
            y, state = layer(leaf, mask=mask)
            loss = y[mask].square().sum() + sum(s.square().sum() for name, s in state.items() if name not in ("keys", "values") and s.is_floating_point())
            results.append([y[mask], *torch.autograd.grad(loss, [leaf, *layer.parameters()], allow_unused=True)])
            assert (results[-1][1][~mask] == 0).all(), "padding has no gradient"
        for other in results[1:]:
            assert all((a is None and b is None) or torch.equal(a, b) for a, b in zip(results[0], other)), layer


@pytest.mark.parametrize("mixer", ["lattice_dec", "mlstm", "rwkv7"])
def test_padding_has_the_gradients_of_the_text(mixer):
    model, text = small_model(mixer), tokens_of(1, 6)
    alone = gradients(model, model(text[:, :-1], targets=text[:, 1:])[0])
    padded = torch.cat([tokens_of(1, 3, seed=9), text[:, :-1]], 1)
    mask = torch.arange(8).unsqueeze(0) >= 3
    targets = torch.cat([torch.full((1, 3), -1), text[:, 1:]], 1)
    got = gradients(model, model(padded, targets=targets, mask=mask)[0])
    for name in alone:
        assert (got[name] - alone[name]).norm() <= 1e-4 * alone[name].norm() + 1e-7, name


def test_sequences_that_cannot_be_are_named():
    model, tokens = small_model(), tokens_of(1, 4)
    for message, keys in {"the mask has a hole": dict(mask=torch.tensor([[1, 0, 1, 1]])),
                          r"mask must be \[B,T\] = \[1, 4\]": dict(mask=torch.ones(1, 3)),
                          "exclude each other": dict(mask=torch.ones(1, 4), cu_seqlens=torch.tensor([0, 4]))}.items():
        with pytest.raises(ValueError, match=message):
            model(tokens, **keys)
    attention = small_model("transformer")
    _, states = attention(tokens, cu_seqlens=torch.tensor([0, 4]))
    with pytest.raises(ValueError, match="leaves no state to go on from"):
        attention(tokens, states)
    with pytest.raises(TypeError, match="float16 is not supported"):
        small_model().half()(tokens)
    with pytest.raises(TypeError, match="autocast to torch.float16 is not supported"), torch.autocast("cpu", torch.float16):
        small_model()(tokens)


class Doubled(torch.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_linear_layers_may_be_replaced_and_watched():
    """As LoRA, quantisers and hooks do."""
    model, tokens = small_model(), tokens_of(1, 5)
    block = model.blocks[0]
    plain, _ = model(tokens)
    for owner, name in ((block.mixer, "qk"), (block.mixer, "out"), (block.mixer, "gamma"), (block.ffn, "up"), (block.ffn, "down")):
        old = getattr(owner, name)
        seen = []
        handle = old.register_forward_hook(lambda module, args, out: seen.append(out))
        torch.testing.assert_close(model(tokens)[0], plain, **TIGHT)
        handle.remove()
        assert len(seen) == 1
        new = Doubled(old.in_features, old.out_features, bias=old.bias is not None)
        new.load_state_dict(old.state_dict())
        setattr(owner, name, new)
        assert not torch.allclose(model(tokens)[0], plain, atol=1e-3), name
        setattr(owner, name, old)


@pytest.mark.parametrize("mixer", MEMORIES)
def test_states_are_float32_in_bfloat16(mixer):
    model, tokens = small_model(mixer), tokens_of(2, 9)
    exact, _ = model(tokens)
    narrow = copy.deepcopy(model).bfloat16()
    logits, states = narrow(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, mixed_states = model(tokens)
        loss, _ = model(tokens, targets=tokens)
    for out in (logits, mixed):
        assert out.dtype == torch.float32
        assert (out - exact).norm() < 0.1 * exact.norm()
    for state in (*states, *mixed_states):
        for name, value in state.items():
            assert not value.is_floating_point() or value.dtype == torch.float32, name
    for gradient in gradients(model, loss).values():
        assert gradient.dtype == torch.float32 and gradient.isfinite().all()
    narrow_loss, _ = narrow(tokens, targets=tokens)
    assert all(g.dtype == torch.bfloat16 and g.isfinite().all() for g in gradients(narrow, narrow_loss).values())


@pytest.mark.parametrize("mixer", ["lattice_dec", "mamba2", "mlstm", "rwkv7", "transformer"])
def test_compiled_in_one_graph(mixer):
    torch._dynamo.reset()
    model, tokens = small_model(mixer, layers=1), tokens_of(2, 9)
    eager, states = model(tokens, targets=tokens)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    loss, got = compiled(tokens, targets=tokens)
    torch.testing.assert_close(loss, eager)
    for a, b in zip(gradients(model, loss).values(), gradients(model, eager).values()):
        torch.testing.assert_close(a, b)
    for name in states[0]:
        torch.testing.assert_close(got[0][name], states[0][name])


@pytest.mark.parametrize("mixer", MEMORIES)
def test_names_are_those_of_checkpoints(mixer, tmp_path):
    model = small_model(mixer)
    listed = json.loads(torch.ops.lattice.describe_model(model.config.to_json()))["tensors"]
    assert {name: list(value.shape) for name, value in model.state_dict().items()} == {t["name"]: t["shape"] for t in listed}
    model.save_checkpoint(tmp_path / "saved")
    again = lnn.LanguageModel.from_checkpoint(tmp_path / "saved")
    assert again.config == model.config
    assert all(torch.equal(a, b) for a, b in zip(again.state_dict().values(), model.state_dict().values()))
    safetensors = pytest.importorskip("safetensors.torch")
    missing, unexpected = lnn.LanguageModel(model.config).load_state_dict(safetensors.load_file(tmp_path / "saved/model.safetensors"))
    assert not missing and not unexpected


def test_bad_checkpoints_are_named(tmp_path):
    model = small_model()
    model.save_checkpoint(tmp_path / "a")
    config = tmp_path / "a/config.json"
    text = config.read_text()
    for change, message in {'"width": 64': "has shape", '"layers": 3': "lacks the tensor", '"future": 1': "future.*newer version of Lattice.*read it with that version",
                            '"model_type": "gpt"': "describes a model of the type"}.items():
        key = change.partition(":")[0]
        lines = [line for line in text.splitlines() if key not in line]
        config.write_text("\n".join([lines[0], f"  {change},", *lines[1:]]))
        with pytest.raises(ValueError, match=message):
            lnn.LanguageModel.from_checkpoint(tmp_path / "a")
    with pytest.raises(ValueError, match="No such file"):
        lnn.LanguageModel.from_checkpoint(tmp_path / "b")
    (tmp_path / "a/trainer.json").write_text("{}")
    with pytest.raises(ValueError, match="save into another directory"):
        model.save_checkpoint(tmp_path / "a")


def test_the_same_seed_is_the_same_model():
    config = lnn.Config(**SMALL)
    a, b = lnn.LanguageModel(config, seed=4), lnn.LanguageModel(config, seed=5)
    assert torch.equal(a.blocks[1].mixer.qk.weight, lnn.Block(config, 1, seed=4).mixer.qk.weight)
    assert not torch.equal(a.embed.weight, b.embed.weight)
    torch.manual_seed(1)
    c = lnn.LanguageModel(config)
    torch.manual_seed(1)
    assert torch.equal(c.embed.weight, lnn.LanguageModel(config).embed.weight)
    torch.testing.assert_close(c.blocks[0].mixer.state0.norm(dim=-1), torch.ones(2, 16))
    with torch.device("meta"):
        assert lnn.LanguageModel(config).embed.weight.is_meta


@pytest.mark.parametrize("name", ["Lattice", "LatticeEnc", "DeltaNet", "GatedDeltaNet", "Mamba2", "GLA", "RWKV7", "TTT", "MLSTM",
                                  "LinearAttention"])
def test_every_memory_is_a_layer(name):
    layer = getattr(lnn, name)(width=24, heads=2, slots=5, seed=1)
    x = torch.randn(2, 7, 24)
    y, state = layer(x)
    assert y.shape == x.shape and y.isfinite().all() and y.std() > 0
    again = pickle.loads(pickle.dumps(layer))
    assert type(again) is type(layer) and torch.equal(again(x)[0], y)
    one, _ = layer(x[:, :1], state)
    assert one.shape == (2, 1, 24)
    assert "slots" in (type(layer).__doc__ or "")


def test_layers_take_the_keys_of_models():
    layer = lnn.Lattice(32, 2, objective="enc", lam=0.1, gamma_bias=2.0)
    assert layer.config.mixer == "lattice_enc" and (layer.gamma.bias == 2).all()
    with pytest.raises(ValueError, match="objective is 'sum'; the choices are 'dec', 'enc', 'sim'"):
        lnn.Lattice(32, 2, objective="sum")
    with pytest.raises(ValueError, match="does not divide"):
        lnn.DeltaNet(32, 5)
    with pytest.raises(ValueError, match="lamb"):
        lnn.DeltaNet(32, 2, lamb=1)
    with pytest.raises(AttributeError):
        _ = lnn.DeltaNett
    with pytest.raises(ValueError, match="vocab_size is 0"):
        lnn.LanguageModel(lnn.Config())


@pytest.mark.parametrize("option", OPTIONS)
def test_recomputing_changes_no_bit(option):
    model, tokens = small_model(**OPTIONS[option]), tokens_of(2, 9)
    kept = gradients(model, model(tokens, targets=tokens)[0])
    model.recompute = True
    again = gradients(model, model(tokens, targets=tokens)[0])
    assert all(torch.equal(kept[name], again[name]) for name in kept)


def test_decay_is_for_matrices():
    model = small_model("mamba2")
    decays, others = model.decay_groups(0.1)
    assert decays["weight_decay"] == 0.1 and others["weight_decay"] == 0
    assert len(decays["params"]) + len(others["params"]) == len(list(model.parameters()))
    assert all(p.dim() == 2 for p in decays["params"]) and any(p is model.blocks[0].mixer.log_decay for p in others["params"])


def test_import_is_lazy():
    code = ("import sys, lattice; assert 'lattice.nn' not in sys.modules; lattice.nn.Config; assert 'lattice.nn' in sys.modules;"
            "assert 'transformers' not in sys.modules")
    package = str(Path(lattice.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=package))
    assert done.returncode == 0, done.stderr


STACKS = {name: OPTIONS[name] for name in OPTIONS if {"mixers", "block"} & set(OPTIONS[name])}


@pytest.mark.parametrize("stack", STACKS)
@torch.no_grad()
def test_layers_that_differ_and_windows_may_be_split_and_padded(stack):
    model, tokens = small_model(**STACKS[stack]), tokens_of(2, 31)
    whole, states = model(tokens)
    parts, carried = [], None
    for piece in tokens.split([1, 2, 9, 13, 6], 1):
        logits, carried = model(piece, carried)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(states, carried):
        assert {name: x.shape for name, x in ours.items()} == {name: x.shape for name, x in theirs.items()}
    padded = torch.cat([tokens_of(2, 5, seed=9), tokens], 1)
    mask = torch.ones_like(padded, dtype=torch.bool)
    mask[:, :5] = False
    torch.testing.assert_close(model(padded, mask=mask)[0][:, 5:], whole, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_state_of_a_window_does_not_grow():
    model = small_model(**OPTIONS["window"])
    _, states = model(tokens_of(1, 40))
    _, later = model(tokens_of(1, 40), states)
    assert [x.shape for x in states[0].values()] == [x.shape for x in later[0].values()]


def test_what_a_window_cannot_do_is_refused():
    model, tokens = small_model(**OPTIONS["window"]), tokens_of(1, 6)
    with pytest.raises(ValueError, match="packed"):
        model(tokens, cu_seqlens=torch.tensor([0, 3, 6]))
    with pytest.raises(ValueError, match="before the texts"):
        model(tokens, mask=torch.tensor([[True] * 4 + [False] * 2]))
    with pytest.raises(ValueError, match="JoinedMixer"):
        lattice.nn.MemoryLayer(32, 2, mixer="lattice_dec", block="attention")
