"""Small untrained models, written as checkpoints (docs/checkpoint-format.md) without torch.

Weights are large, so that differences do not hide behind small activations. The end of text has a zero row in the
head: greedy texts go on until they have the tokens that were asked for.
"""

import hashlib
import json
import random
import struct
from pathlib import Path

from torture.safetensors import Tensor, pack

VOCABULARY = 257  # bytes and the end of text
END_OF_TEXT = 256
CONV = 4
WEIGHT = 0.2
PERIOD = 4093

# Tensors of one block by their shapes in letters, as the table in docs/checkpoint-format.md has them.
FEED_FORWARD = {"ffn_norm.weight": "C", "ffn.gate.weight": "FC", "ffn.up.weight": "FC", "ffn.down.weight": "CF"}
MEMORY_BLOCK = {
    "pre_norm.weight": "C", "pre_conv.weight": "CW", "pre_conv.bias": "C", "mix_norm.weight": "C",
    "mixer.qk.weight": "SC", "mixer.conv_q.weight": "SW", "mixer.conv_q.bias": "S", "mixer.conv_k.weight": "SW",
    "mixer.conv_k.bias": "S", "mixer.v.weight": "CC", "mixer.gate.weight": "CC", "mixer.gamma.weight": "HC",
    "mixer.gamma.bias": "H", "mixer.mu.weight": "HC", "mixer.mu.bias": "H", "mixer.state0": "HMD",
    "mixer.out_norm.weight": "C", "mixer.out_norm.bias": "C", "mixer.out.weight": "CC", **FEED_FORWARD}
ATTENTION_BLOCK = {"mix_norm.weight": "C", "mixer.q.weight": "CC", "mixer.k.weight": "CC", "mixer.v.weight": "CC",
                   "mixer.out.weight": "CC", **FEED_FORWARD}

# What the attacks are run on: a recurrent memory, a transformer, whose state grows with the text, and a model with
# special tokens and a chat template.
CONFIGS = {
    "memory": dict(mixer="lattice_dec", layers=2, width=64, heads=2, slots=32),
    "transformer": dict(mixer="transformer", layers=4, width=256, heads=4),
    "chat": dict(mixer="lattice_dec", layers=2, width=64, heads=2, slots=32),
}
SPECIAL = ["<s>", "<|im_end|>", "<|im_start|>"]  # of "chat": ids 256 and on; the second is the end of text
CHAT_TEMPLATE = ("{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n"
                 "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def _values(count, name, draw):
    if name.endswith("norm.weight"):
        return [1.0] * count
    if name.endswith(".bias"):
        return [0.0] * count
    # A row of random numbers of an odd length, again and again: as good here, and a hundred times as fast.
    row = [draw.gauss(0, WEIGHT) for _ in range(min(count, PERIOD))]
    return (row * (count // PERIOD + 1))[:count]


def _tensor(name, shape, draw, end_of_text):
    count = 1
    for extent in shape:
        count *= extent
    values = _values(count, name, draw)
    if name == "head.weight":
        width = shape[1]
        values[end_of_text * width:(end_of_text + 1) * width] = [0.0] * width
    return Tensor(list(shape), struct.pack(f"<{count}f", *values))


def _tensors(config, end_of_text):
    width, heads = config["width"], config["heads"]
    slots = config.get("slots", width // heads)
    extent = dict(C=width, H=heads, M=slots, D=width // heads, S=heads * slots, W=CONV, F=config["hidden"])
    draw = random.Random(7)
    rows = config["vocab_size"]
    shapes = {"embed.weight": (rows, width), "final_norm.weight": (width,), "head.weight": (rows, width)}
    block = ATTENTION_BLOCK if config["mixer"] == "transformer" else MEMORY_BLOCK
    for layer in range(config["layers"]):
        for name, letters in block.items():
            shapes[f"blocks.{layer}.{name}"] = tuple(extent[letter] for letter in letters)
    return {name: _tensor(name, shape, draw, end_of_text) for name, shape in shapes.items()}


def _bytes_tokenizer():
    """lattice_tokenizer.json of bytes, and no other files."""
    return dict(kind="bytes", vocab_size=VOCABULARY, bos_id=-1, eos_id=END_OF_TEXT, eot_id=END_OF_TEXT,
                hash=hashlib.sha256(b"bytes").hexdigest()), {}


def _byte_characters():
    """The characters that byte-level BPE writes bytes as: themselves where they can be seen, or from 256 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def _chat_tokenizer():
    """lattice_tokenizer.json and files of a tokenizer.json with bytes and SPECIAL."""
    added = [dict(id=256 + i, content=text, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for i, text in enumerate(SPECIAL)]
    vocabulary = {character: byte for byte, character in _byte_characters().items()}
    content = dict(version="1.0", added_tokens=added, normalizer=None,
                   pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, use_regex=True), post_processor=None,
                   model=dict(type="BPE", vocab=vocabulary, merges=[]))
    files = {"tokenizer.json": json.dumps(content),
             "tokenizer_config.json": json.dumps(dict(bos_token=SPECIAL[0], eos_token=SPECIAL[1]))}
    digest = hashlib.sha256(b"tokenizer.json")
    for name, text in files.items():
        digest.update(f"\n{name} {len(text)}\n{text}".encode())
    saved = dict(kind="tokenizer.json", vocab_size=256 + len(SPECIAL), bos_id=256, eos_id=257, eot_id=257,
                 hash=digest.hexdigest())
    return saved, {**files, "chat_template.jinja": CHAT_TEMPLATE}


def write_model(kind, directory):
    """Writes the checkpoint of CONFIGS[kind] into `directory` and returns its path."""
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    tokenizer, files = _chat_tokenizer() if kind == "chat" else _bytes_tokenizer()
    config = dict(CONFIGS[kind], hidden=2 * CONFIGS[kind]["width"], vocab_size=tokenizer["vocab_size"], tie_embedding=False)
    head = dict(architectures=["LatticeForCausalLM"], model_type="lattice", torch_dtype="float32")
    (path / "config.json").write_text(json.dumps({**head, **config}))
    (path / "model.safetensors").write_bytes(pack(_tensors(config, tokenizer["eot_id"])))
    (path / "lattice_tokenizer.json").write_text(json.dumps(tokenizer))
    for name, text in files.items():
        (path / name).write_text(text)
    return path
