"""Training by other people's code: Trainer, PEFT, checkpointing, autocast, torch.compile and export, DDP and FSDP."""

import copy
import os

import pytest
from hf_models import MEMORIES, TEXTS, checkpoint, close, load, text, written, written_by_cpp

import accelerate
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch._dynamo.utils import counters
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

import lattice.hf  # noqa: F401  (registers the models)


def tokens(rows=2, length=40, seed=0):
    return torch.randint(0, 256, (rows, length), generator=torch.Generator().manual_seed(seed))


def gradients(model, **inputs):
    model.zero_grad()
    model(**inputs).loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def trainer(model, tokenizer, out, **options):
    tokenizer.padding_side = "right"  # on the left, a text's first token is a target whose input is padding
    content = text().read_text()
    data = [{"input_ids": tokenizer(content[i * 80 : i * 80 + 80 - 10 * (i % 3)]).input_ids} for i in range(16)]
    arguments = TrainingArguments(output_dir=out, learning_rate=1e-3, report_to=[], use_cpu=True, save_strategy="no",
                                  logging_steps=1, disable_tqdm=True, dataloader_drop_last=True, seed=0, **options)  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    made = Trainer(model=model, args=arguments, train_dataset=data, data_collator=collator, processing_class=tokenizer)
    made.train()
    return made, [(entry["loss"], entry["grad_norm"]) for entry in made.state.log_history if "loss" in entry]


def test_trainer_and_accumulation(tmp_path):
    model, tokenizer = load()
    logs = []
    for pieces in (1, 4):
        part = copy.deepcopy(model)
        made, log = trainer(part, tokenizer, tmp_path, num_train_epochs=1, per_device_train_batch_size=8 // pieces,
                            gradient_accumulation_steps=pieces)  # fmt: skip
        logs.append(torch.tensor(log))
    assert len(logs[0]) == 2 and logs[0].isfinite().all()  # of two batches, so the second loss may be the larger
    assert close(logs[0], logs[1], 1e-4), logs
    made.save_model(tmp_path / "final")
    assert written_by_cpp(tmp_path / "final", TEXTS[0]) == written(part.eval(), tokenizer, TEXTS[0])


def test_accelerate():
    """A step by Accelerator is the step without it."""
    results = []
    for accelerator in (None, accelerate.Accelerator(cpu=True)):
        model, _ = load()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if accelerator:
            model, optimizer = accelerator.prepare(model, optimizer)
        loss = model(tokens(), labels=tokens()).loss
        accelerator.backward(loss) if accelerator else loss.backward()
        optimizer.step()
        results.append([parameter.detach() for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("memory", MEMORIES)
def test_gradient_checkpointing_changes_no_bit(memory):
    model, _ = load(checkpoint(memory))
    model.train()
    ids = tokens()
    plain = gradients(model, input_ids=ids, labels=ids)
    model.gradient_checkpointing_enable()
    again = gradients(model, input_ids=ids, labels=ids)
    assert plain.keys() == dict(model.named_parameters()).keys()
    assert all(torch.equal(plain[name], again[name]) for name in plain)


def test_padding_changes_no_gradient():
    model, _ = load()
    model.train()
    ids = tokens(1)
    plain = gradients(model, input_ids=ids, labels=ids)
    padded = torch.cat([torch.full((1, 9), 256), ids], 1)
    mask = (torch.arange(49) >= 9).long().unsqueeze(0)
    labels = padded.masked_fill(torch.arange(49) <= 9, -100)
    got = gradients(model, input_ids=padded, attention_mask=mask, labels=labels)
    for name, gradient in got.items():
        assert (gradient - plain[name]).norm() <= 1e-5 * plain[name].norm(), name
    noisy = torch.cat([tokens(1, 9, seed=7), ids], 1)
    other = gradients(model, input_ids=noisy, attention_mask=mask, labels=labels)
    assert all(torch.equal(other[name], gradient) for name, gradient in got.items()), "what stands in padding changes no bit"


def test_lora(tmp_path):
    model, tokenizer = load()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    trained = {name.split(".lora_")[0].split(".")[-1] for name, p in adapted.named_parameters() if p.requires_grad}
    assert {"qk", "v", "gate", "out", "up", "down"} <= trained
    optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], 1e-2)
    ids, losses = tokens(), []
    for _ in range(4):
        loss = adapted(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    adapted.eval().save_pretrained(tmp_path / "adapter")
    with torch.no_grad():
        logits = adapted(input_ids=ids).logits
        loaded = PeftModel.from_pretrained(load()[0], tmp_path / "adapter").eval()
        assert close(loaded(input_ids=ids).logits, logits)
        merged = adapted.merge_and_unload()
        assert close(merged(ids).logits, logits, 1e-4)
    assert any(not torch.equal(before[name], value) for name, value in merged.state_dict().items())
    merged.save_pretrained(tmp_path / "merged")
    tokenizer.save_pretrained(tmp_path / "merged")
    assert written_by_cpp(tmp_path / "merged", TEXTS[0]) == written(merged, tokenizer, TEXTS[0])


def test_autocast():
    model, _ = load()
    model.train()
    ids = tokens()
    exact = model(ids, labels=ids).loss
    with torch.autocast("cpu", torch.bfloat16):
        out = model(ids, labels=ids, use_cache=True)
    out.loss.backward()
    assert abs(out.loss - exact) < 0.02 * exact and all(p.grad.isfinite().all() for p in model.parameters())
    assert {state.dtype for layer in out.past_key_values.layers for state in layer.state.values()} == {torch.float32}


def test_compiled_decoding_has_two_graphs():
    model, _ = load()
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    ids = tokens(2, 24)
    with torch.no_grad():
        caches = [model(ids[:, :8], use_cache=True).past_key_values for _ in range(2)]
        for i in range(8, 24):
            step = ids[:, i : i + 1]
            assert torch.equal(compiled(step, past_key_values=caches[0]).logits, model(step, past_key_values=caches[1]).logits)
    assert counters["stats"]["unique_graphs"] <= 2, counters["stats"]


def test_compiled_training_step():
    model, _ = load()
    model.train()
    ids = tokens()
    plain = gradients(model, input_ids=ids, labels=ids)
    torch._dynamo.reset()
    compiled = gradients(torch.compile(model, fullgraph=True, backend="aot_eager"), input_ids=ids, labels=ids)
    assert all(close(compiled["_orig_mod." + name], plain[name]) for name in plain)


@pytest.mark.parametrize("memory", MEMORIES)
def test_export_with_any_length(memory):
    model, _ = load(checkpoint(memory))
    length = torch.export.Dim("length", min=8, max=4096)
    shapes = {"input_ids": {1: length}, "use_cache": None}
    program = torch.export.export(model, (tokens(),), {"use_cache": False}, dynamic_shapes=shapes)
    for T in (17, 64):
        ids = tokens(2, T)
        assert close(program.module()(ids, use_cache=False).logits, model(ids, use_cache=False).logits)


def check_gradients(got, expected):
    for name, gradient in got.items():
        difference = (gradient - expected[name]).norm() / expected[name].norm().clamp_min(1e-6)
        assert difference < 1e-3, (name, difference)


def shared_training(rank, world, path, port):
    """One step of two processes under DDP and FSDP2 has the gradients of one process with both batches."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    model, _ = load(path)
    alone, sharded = copy.deepcopy(model), copy.deepcopy(model)
    batches = [tokens(1, 40, seed) for seed in range(world)]
    (sum(alone(ids, labels=ids).loss for ids in batches) / world).backward()
    expected = {name: parameter.grad for name, parameter in alone.named_parameters()}
    own = {"input_ids": batches[rank], "labels": batches[rank]}
    parallel = torch.nn.parallel.DistributedDataParallel(model)  # has to outlive the backward pass
    parallel(**own).loss.backward()
    check_gradients({name: parameter.grad for name, parameter in model.named_parameters()}, expected)
    for block in sharded.blocks:
        torch.distributed.fsdp.fully_shard(block)
    torch.distributed.fsdp.fully_shard(sharded)
    sharded(**own).loss.backward()
    check_gradients({name: parameter.grad.full_tensor() for name, parameter in sharded.named_parameters()}, expected)
    torch.distributed.destroy_process_group()


def test_two_processes(unused_port):
    torch.multiprocessing.spawn(shared_training, (2, checkpoint(), unused_port), nprocs=2)


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
