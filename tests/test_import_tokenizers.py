"""tokenizer.json of published models: the ids are those of the `tokenizers` library, on a novel and on hostile strings."""

import json
import random

import pytest
from cli_program import ROOT, ok

pytest.importorskip("transformers")

from test_hf_tokenizers import HOSTILE, NOVEL, ids_in_cpp  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

VOCAB = json.loads((ROOT / "tests/data/bpe/vocab.json").read_text())
MERGES = [tuple(line.split()) for line in (ROOT / "tests/data/bpe/merges.txt").read_text().splitlines() if line[0] != "#"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLITS = {"gpt2": None, "smollm": "digits", "llama3": LLAMA3, "qwen2": LLAMA3.replace("{1,3}", "")}
MORE = ["it'S 'Twas 'ſ 'LL 'Re", "1234567 89 x12y", "a  1", "   2", "\n\n\n  \n x", " \r\n\t \r", "(well)\n\n", "<tool> <|endoftext|>",
        "<tool><tool2>", "Ωmega ¼ Ⅷ ² ٣", "\u00a0\u00a0x \u2003 y"]


@pytest.fixture(scope="module", params=SPLITS)
def tokenizer(request, tmp_path_factory):
    whole = request.param == "llama3"
    out = Tokenizer(models.BPE(VOCAB, MERGES, ignore_merges=whole))
    split = SPLITS[request.param]
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split in (None, "digits"))
    first = {"digits": pre_tokenizers.Digits(individual_digits=True), None: None}.get(split, "regex")
    if first == "regex":
        first = pre_tokenizers.Split(Regex(split), behavior="isolated")
    out.pre_tokenizer = bytes_only if first is None else pre_tokenizers.Sequence([first, bytes_only])
    out.decoder = decoders.ByteLevel()
    out.add_special_tokens(["<|endoftext|>"])
    out.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<tool2>", normalized=True), AddedToken("ool><t", normalized=True)])
    folder = tmp_path_factory.mktemp(request.param)
    out.save(str(folder / "tokenizer.json"))
    return out, folder


def texts():
    draw = random.Random(3)
    alphabets = ["ab 1", "the hen 12", " \n\r\t1a", "é漢🙂 a'sSdD", "()[] \n.", [chr(c) for c in range(0x250)], "<tool>2 "]
    made = ["".join(draw.choices(alphabets[i % 7], k=draw.randrange(1, 60))) for i in range(400)]
    return HOSTILE + MORE + made + [NOVEL.read_text(errors="ignore")[:200_000]]


def test_ids_are_those_of_the_library(tokenizer):
    theirs, folder = tokenizer
    theirs.encode_special_tokens = True  # text is only text
    for text, ids in zip(texts(), ids_in_cpp(folder, texts()), strict=True):
        assert ids == theirs.encode(text, add_special_tokens=False).ids, repr(text[:80])


def test_special_tokens_are_found_where_that_is_asked_for(tokenizer):
    theirs, folder = tokenizer
    theirs.encode_special_tokens = False
    text = "the<|endoftext|> hen <|endoftext|><|endoftext|"
    ids = ok("tokenizer", "encode", "--tokenizer", folder, "--special", "--text", text).split()
    assert [int(i) for i in ids] == theirs.encode(text, add_special_tokens=False).ids
