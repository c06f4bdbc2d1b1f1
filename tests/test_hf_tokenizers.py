"""Checkpoints carry their tokenizer for Hugging Face's libraries: the ids are those of the C++ tokenizer, for any text."""

import json
import random
import re
import subprocess
import sys

import pytest
from cli_program import PROGRAM, ROOT, TINY, ok, settings, write_text

pytest.importorskip("transformers")

from tokenizers import Tokenizer  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

import lattice.hf  # noqa: E402

KINDS = ("bytes", "sentencepiece", "bpe")
NOVEL = next((ROOT / "data").rglob("*.txt"))
HOSTILE = [
    "", " ", "  ", "\n", "\t x \t", "a", " a", "a ", "  a  b   c    ", "\n\nnew\tline\n ", " \n ", "    " * 9 + "x",
    "a\u0000b", "\u0001\u0002\u001b[31m\u007f\u0085\u009f", "\r\n\r", "\ufeffbom", "\u2028\u2029\u00a0\u3000\u200b\u200d", "\ufffd",
    "café naïve — “quotes” … ﬁ ① Å Å", "漢字かな交じり文", "🙂👍🏽👩‍👩‍👧", "\u2581\u2581 mark \u2581x", "e\u0301\u0301\u0301",
    "<|endoftext|>", "<s> </s> <unk> <0x0A> <pad>", "x<|endoftext|>y", "don't I'll we've 'S 's' 1234567890 ١٢٣ ²",
    "x" * 5000, "ha" * 999, "=" * 333 + "-" * 77, "aaaaabaaaaab" * 50, "the" * 3000, "\U0010ffff\U000e0001",
]  # fmt: skip


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    text = write_text(folder / "text.txt")
    ok("tokenizer", "train", "--data", NOVEL, "--vocab", 1500, "--max-lines", 3000, "--out", folder / "novel.model")
    specs = {"bytes": "bytes", "sentencepiece": folder / "novel.model", "bpe": ROOT / "tests/data/bpe"}
    for kind, spec in specs.items():
        ok("train", "--data", text, "--out", folder / kind, "--threads", 1,
           *settings(*TINY, "train.steps=1", f"data.tokenizer={spec}"))  # fmt: skip
    return {kind: folder / kind / "checkpoints" / "latest" for kind in KINDS}


def ids_in_cpp(checkpoint, texts):
    command = [PROGRAM, "tokenizer", "encode", "--tokenizer", checkpoint, "--json-lines"]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    result = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=300, check=True)
    return [[int(word) for word in line.split()] for line in result.stdout.splitlines()]


def random_texts(count):
    """Short alphabets meet merges that overlap; wide ones meet every class of character."""
    draw = random.Random(5)
    alphabets = ["ab ", "a-= ", "the hen", " \n\t", "thanisoer ,.", "é漢🙂 a\u0000\u0301'", [chr(c) for c in range(0x250)]]
    return ["".join(draw.choices(alphabets[i % 7], k=draw.randrange(1, 60))) for i in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_equal_those_of_cpp(checkpoints, kind):
    tokenizer = AutoTokenizer.from_pretrained(checkpoints[kind])
    assert isinstance(tokenizer, lattice.hf.LatticeTokenizer)
    novel = NOVEL.read_text(errors="ignore")
    texts = HOSTILE + [novel[i : i + 997] for i in range(0, 40000, 997)] + [novel[:100000]] + random_texts(2000)
    expected = ids_in_cpp(checkpoints[kind], texts)
    got = tokenizer(texts, add_special_tokens=True).input_ids
    wrong = [(text[:60], ours[:20], theirs[:20]) for text, ours, theirs in zip(texts, got, expected) if ours != theirs]
    assert len(got) == len(expected) and wrong == []
    for text, ids in zip(texts, got):
        assert tokenizer.decode(ids, skip_special_tokens=True) == text.replace("\u2581", " " if kind == "sentencepiece" else "\u2581")


@pytest.mark.parametrize("kind", KINDS)
def test_every_character(checkpoints, kind):
    """Characters of every block of Unicode between letters, digits and spaces, where they decide how words are cut."""
    characters = [chr(c) for c in range(0x110000) if (c < 0x3400 or c % 16 == 0) and not 0xD800 <= c <= 0xDFFF]
    texts = [" ".join(f"a{c}{c}b 1{c}. {c}" for c in characters[i : i + 4096]) for i in range(0, len(characters), 4096)]
    tokenizer = AutoTokenizer.from_pretrained(checkpoints[kind])
    assert tokenizer(texts).input_ids == ids_in_cpp(checkpoints[kind], texts)


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens(checkpoints, kind):
    saved = json.loads((checkpoints[kind] / "lattice_tokenizer.json").read_text())
    tokenizer = AutoTokenizer.from_pretrained(checkpoints[kind])
    assert tokenizer.eos_token_id == tokenizer.pad_token_id == saved["eot_id"]
    assert tokenizer.bos_token_id == (saved["bos_id"] if saved["bos_id"] >= 0 else None)
    assert len(tokenizer) == saved["vocab_size"]
    assert tokenizer.decode([saved["eot_id"]], skip_special_tokens=True) == ""
    assert saved["eot_id"] not in tokenizer("<|endoftext|>").input_ids
    generation = json.loads((checkpoints[kind] / "generation_config.json").read_text())
    assert generation == dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), saved["eot_id"])
    batch = tokenizer(["a", "a longer text"], padding=True)
    assert batch.attention_mask[0][0] == 0 and batch.input_ids[0][0] == saved["eot_id"], "padding is on the left"


@pytest.mark.parametrize("kind", KINDS)
def test_saved_tokenizers_are_read_by_cpp(checkpoints, kind, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(checkpoints[kind])
    for copy in (tmp_path / "once", tmp_path / "twice"):
        tokenizer.save_pretrained(copy)
        (copy / "config.json").write_bytes((checkpoints[kind] / "config.json").read_bytes())
        tokenizer = AutoTokenizer.from_pretrained(copy)
        assert ids_in_cpp(copy, ["It was"]) == [tokenizer("It was").input_ids]
    for file in checkpoints[kind].glob("*token*"):
        if file.name != "tokenizer_config.json":
            assert (tmp_path / "twice" / file.name).exists(), file.name
    tokenizer.save_pretrained(tmp_path / "twice")  # over itself


def test_the_file_is_data_for_the_tokenizers_library(checkpoints):
    for kind in KINDS:
        tokenizer = Tokenizer.from_file(str(checkpoints[kind] / "tokenizer.json"))
        assert tokenizer.encode("It was").ids == ids_in_cpp(checkpoints[kind], ["It was"])[0]


def test_a_checkpoint_without_these_files(checkpoints, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    for file in checkpoints["bytes"].iterdir():
        if file.name not in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "trainer.json"):
            (old / file.name).write_bytes(file.read_bytes())
    check_native(old)
    (old / "lattice_tokenizer.json").unlink()
    with pytest.raises(ValueError, match="neither a tokenizer.json nor a lattice_tokenizer.json"):
        AutoTokenizer.from_pretrained(old)


def check_native(checkpoint):
    """AutoTokenizer gives the C++ tokenizer itself: ids, text, padding, and files that C++ reads when it is saved."""
    texts = [text for text in HOSTILE if len(text) < 1000] + random_texts(200)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    assert isinstance(tokenizer, lattice.hf.LatticeNativeTokenizer)
    assert tokenizer(texts).input_ids == ids_in_cpp(checkpoint, texts)
    saved = json.loads((checkpoint / "lattice_tokenizer.json").read_text())
    assert tokenizer.eos_token_id == tokenizer.pad_token_id == saved["eot_id"] and len(tokenizer) == saved["vocab_size"]
    ids = tokenizer("It was a truth").input_ids
    assert tokenizer.decode([*ids, saved["eot_id"]]) == tokenizer.decode(ids) == "It was a truth"
    batch = tokenizer(["a", "a longer text"], padding=True)
    assert batch.attention_mask[0][0] == 0 and batch.input_ids[0][0] == saved["eot_id"], "padding is on the left"
    copy = checkpoint.parent / "native copy"
    tokenizer.save_pretrained(copy)
    (copy / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    again = AutoTokenizer.from_pretrained(copy)
    assert type(again) is type(tokenizer) and ids_in_cpp(copy, texts[:9]) == again(texts[:9]).input_ids


@pytest.mark.parametrize("kind", ["unigram", "nmt_nfkc", "user_defined"])
def test_sentencepiece_models_that_tokenizer_json_cannot_express(kind, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")  # which trains them; `./lattice tokenizer train` makes none of these
    options = {"unigram": dict(model_type="unigram", byte_fallback=True), "nmt_nfkc": dict(model_type="bpe"),
               "user_defined": dict(model_type="bpe", user_defined_symbols=["<tool>"], normalization_rule_name="identity")}  # fmt: skip
    sentencepiece.SentencePieceTrainer.train(input=str(NOVEL), model_prefix=str(tmp_path / "spm"), vocab_size=600,
                                             input_sentence_size=1000, minloglevel=2, **options[kind])  # fmt: skip
    ok("train", "--data", write_text(tmp_path / "text.txt"), "--out", tmp_path / "run", "--threads", 1,
       *settings(*TINY, "train.steps=1", f"data.tokenizer={tmp_path / 'spm.model'}"))  # fmt: skip
    checkpoint = (tmp_path / "run" / "checkpoints" / "latest").resolve()
    assert not (checkpoint / "tokenizer.json").exists()
    check_native(checkpoint)


def test_lines_of_json_are_named_when_wrong(checkpoints):
    for lines, said in (("[1]\n", "line 1 is not a string"), ('"a"\n{"\n', "line 2")):
        command = [PROGRAM, "tokenizer", "encode", "--tokenizer", checkpoints["bytes"], "--json-lines"]
        result = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60)
        assert result.returncode != 0 and re.search(said, result.stderr), result.stderr


def test_lattice_alone_does_not_import_transformers():
    code = "import sys, lattice; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
