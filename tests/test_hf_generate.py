"""generate() of transformers: padding, beams, pieces and caches change nothing that they should not."""

import copy

import pytest
from hf_models import MEMORIES, TEXTS, checkpoint, load, written

import torch
from transformers import DynamicCache, set_seed

from lattice.hf import LatticeCache

GREEDY = {"max_new_tokens": 16, "do_sample": False}
ROUNDING = 1e-5  # products of other shapes add in another order


def apart(a, b):
    """The largest difference, relative to the largest value."""
    return ((a.float() - b.float()).abs().max() / b.abs().max().clamp_min(1e-3)).item()


def states(cache):
    return [{name: state for name, state in layer.state.items()} for layer in cache.layers]


def equal_states(a, b, row=None):
    pick = (lambda x: x) if row is None else (lambda x: x[row])
    return all(torch.equal(pick(x[name]), y[name][0] if row is not None else y[name])
               for x, y in zip(states(a), states(b)) for name in y)  # fmt: skip


def test_sampling_is_a_function_of_the_seed():
    model, tokenizer = load()
    outputs = []
    for options in ({}, {}, {"use_cache": False}):
        set_seed(3)
        outputs.append(written(model, tokenizer, TEXTS[1], do_sample=True, temperature=0.8, top_p=0.95, **options))
    assert outputs[0] == outputs[1] == outputs[2]
    ids = tokenizer(TEXTS[1], return_tensors="pt")
    several = model.generate(**ids, max_new_tokens=8, do_sample=True, num_return_sequences=4)
    assert several.shape[0] == 4 and not torch.equal(several[0], several[1])


def test_without_a_prompt():
    model, tokenizer = load()
    assert model.generate(**GREEDY)[0, 0] == tokenizer.eos_token_id, "behind the end of another text"


@pytest.mark.parametrize("memory", MEMORIES)
def test_padding_changes_nothing(memory):
    model, tokenizer = load(checkpoint(memory))
    exact = memory != "transformer"  # whose state holds the padding's keys as well
    alone = [model(**tokenizer(prompt, return_tensors="pt"), use_cache=True) for prompt in TEXTS]
    for side in ("left", "right"):
        batch = tokenizer(TEXTS, return_tensors="pt", padding=True, padding_side=side)
        noisy = batch.input_ids.masked_fill(batch.attention_mask == 0, 101)
        with torch.no_grad():
            together = model(**batch, use_cache=True)
            other = model(noisy, attention_mask=batch.attention_mask, use_cache=True)
            single = model(batch.input_ids[:1], attention_mask=batch.attention_mask[:1]).logits
        keep = batch.attention_mask.bool()
        assert torch.equal(together.logits[keep], other.logits[keep]), "what stands in the padding changes no bit"
        assert apart(single[keep[:1]], alone[0].logits[0]) < ROUNDING, "a batch of one"
        for row, one in enumerate(alone):
            assert apart(together.logits[row][keep[row]], one.logits[0]) < ROUNDING, (side, row)
            if exact:
                for ours, theirs in zip(states(together.past_key_values), states(one.past_key_values)):
                    for name in ours:
                        assert apart(ours[name][row], theirs[name][0]) < ROUNDING, (side, row, name)


def test_a_padded_batch_writes_what_its_texts_write():
    model, tokenizer = load()
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    together = model.generate(**batch, **GREEDY)[:, batch.input_ids.shape[1] :]
    for prompt, row in zip(TEXTS, together):
        assert written(model, tokenizer, prompt, 16) == tokenizer.decode(row, skip_special_tokens=True)


@pytest.mark.parametrize("memory", ["lattice_dec", "mlstm", "transformer"])
def test_beams_with_and_without_cache(memory):
    model, tokenizer = load(checkpoint(memory))
    batch = tokenizer(TEXTS[:3], return_tensors="pt", padding=True)
    options = dict(GREEDY, num_beams=3, num_return_sequences=2, return_dict_in_generate=True, output_scores=True)
    cached, plain = (model.generate(**batch, **options, use_cache=use_cache) for use_cache in (True, False))
    assert torch.equal(cached.sequences, plain.sequences)
    assert torch.allclose(cached.sequences_scores, plain.sequences_scores, atol=1e-5)
    if memory != "lattice_dec":  # the others have hardly learned anything
        return
    greedy = model.generate(**batch, **GREEDY)
    assert not torch.equal(greedy, cached.sequences[::2, : greedy.shape[1]]), "beams that find nothing better test nothing"


@pytest.mark.parametrize("memory", MEMORIES)
def test_pieces_give_the_whole(memory):
    model, tokenizer = load(checkpoint(memory))
    ids = tokenizer(TEXTS[2], return_tensors="pt").input_ids
    with torch.no_grad():
        whole = model(ids, use_cache=True)
        cache, logits = LatticeCache(model.config), []
        for piece in ids.split([1, 2, 7, 1, ids.shape[1] - 11], 1):
            logits.append(model(piece, past_key_values=cache).logits)
    assert apart(torch.cat(logits, 1), whole.logits) < ROUNDING
    assert cache.get_seq_length() == ids.shape[1]
    in_chunks = model.generate(ids, **GREEDY, prefill_chunk_size=5)
    assert torch.equal(in_chunks, model.generate(ids, **GREEDY))


def test_going_on_from_caches():
    model, tokenizer = load()
    ids = tokenizer(TEXTS[2], return_tensors="pt").input_ids
    whole = model.generate(ids, **GREEDY)
    with torch.no_grad():
        prefix = model(ids[:, :15], use_cache=True).past_key_values
    fork = copy.deepcopy(prefix)
    model.generate(ids, past_key_values=prefix, **GREEDY)
    assert fork.get_seq_length() == 15 < prefix.get_seq_length()
    assert torch.equal(model.generate(ids, past_key_values=fork, **GREEDY), whole)
    half = model.generate(ids, max_new_tokens=8, do_sample=False, return_dict_in_generate=True)
    assert torch.equal(model.generate(half.sequences, past_key_values=half.past_key_values, max_new_tokens=8, do_sample=False), whole)
    assert torch.equal(model.generate(ids, **GREEDY, past_key_values=DynamicCache(config=model.config)), whole)
    assert torch.equal(model.generate(ids, **GREEDY, cache_implementation="offloaded"), whole)


def near_states(a, b):
    """Equal but for the order of sums: torch's products of a row depend on where it stands in its batch (with AVX-512)."""
    return all(apart(x[name], y[name]) < ROUNDING for x, y in zip(states(a), states(b)) for name in y)


def test_rows_of_a_cache():
    model, tokenizer = load()
    ids = tokenizer(TEXTS[2], return_tensors="pt").input_ids[:, :12]
    ids = torch.cat([ids, ids.flip(1)])
    with torch.no_grad():
        cache = model(ids, use_cache=True).past_key_values
        turned, repeated, selected = (copy.deepcopy(cache) for _ in range(3))
        turned.reorder_cache(torch.tensor([1, 0]))
        assert all(torch.equal(x[name], y[name].flip(0)) for x, y in zip(states(turned), states(cache)) for name in y)
        assert near_states(turned, model(ids.flip(0), use_cache=True).past_key_values)
        repeated.batch_repeat_interleave(2)
        assert near_states(repeated, model(ids.repeat_interleave(2, 0), use_cache=True).past_key_values)
        selected.batch_select_indices(torch.tensor([1]))
        assert selected.batch_size == 1 and near_states(selected, model(ids[1:], use_cache=True).past_key_values)
        for layer in cache.layers:
            layer.offload()
            layer.prefetch()
        cache.reset()
        assert cache.get_seq_length() == 0 and cache.batch_size == -1
        assert torch.equal(model(ids, past_key_values=cache).logits, model(ids).logits), "reset is the model's own start, not zeros"


def test_packed_texts_do_not_see_each_other():
    model, tokenizer = load()
    first, second = (tokenizer(text, return_tensors="pt").input_ids for text in TEXTS[1:3])
    bounds = torch.tensor([0, first.shape[1], first.shape[1] + second.shape[1]], dtype=torch.int32)
    with torch.no_grad():
        packed = model(torch.cat([first, second], 1), cu_seq_lens_q=bounds, use_cache=False).logits
        separate = torch.cat([model(first).logits, model(second).logits], 1)
    assert apart(packed, separate) < ROUNDING


@pytest.mark.parametrize("options,said", [
    ({"assistant_model": "itself"}, "takes back tokens"),
    ({"prompt_lookup_num_tokens": 3}, "takes back tokens"),
    ({"cache_implementation": "static"}, "does not grow"),
    ({"cache_implementation": "offloaded_static"}, "does not grow"),
    ({"cache_implementation": "quantized"}, "rounding the state"),
])  # fmt: skip
def test_what_a_memory_cannot_do(options, said):
    model, tokenizer = load()
    options = {name: model if value == "itself" else value for name, value in options.items()}
    with pytest.raises(ValueError, match=said):
        written(model, tokenizer, TEXTS[0], **options)


def test_wrong_masks_and_caches():
    model, tokenizer = load()
    ids = tokenizer(TEXTS[0], return_tensors="pt").input_ids
    cache = model(ids, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="keep a copy of the cache"):
        cache.crop(1)
    cache.crop(0)
    hole = torch.ones_like(ids)
    hole[0, 3] = 0
    for attention_mask, said in ((hole, "the mask has a hole"), (torch.ones(1, 2), r"must be \[B,T\]"), (torch.ones(1, 1, 9, 9), r"must be \[B,T\]")):
        with pytest.raises(ValueError, match=said):
            model(ids, attention_mask=attention_mask)
    with pytest.raises(ValueError, match="has read 1 texts, and 2 go on"):
        model(ids.repeat(2, 1), past_key_values=cache)
    other, _ = load(checkpoint("deltanet"))
    with pytest.raises(ValueError, match="filled by another model: mixer 'lattice_dec' there, 'deltanet' here"):
        other(ids, past_key_values=cache)
    with pytest.raises(ValueError, match="not a cache of this model.*LatticeCache"):
        model(ids, past_key_values=DynamicCache())
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds"):
        model()
