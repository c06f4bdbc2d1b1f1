"""`lattice data`: every form of a corpus gives the same tokens, and bad input is named."""

import gzip
import json
import lzma
import random
import signal
import subprocess
import time

import pytest
from cli_program import PROGRAM, TINY, metrics, ok, run, settings

pyarrow = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402, F811

TEXTS = [f"Document {i}: " + " ".join(f"word{i * j % 31}" for j in range(i % 50)) + ("\n" if i % 3 else " é\n") for i in range(400)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus")
    plain = "".join(text + "<|endoftext|>\n" for text in TEXTS).encode()
    lines = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(TEXTS)).encode()
    (path / "a.txt").write_bytes(plain)
    (path / "a.jsonl").write_bytes(lines)
    for name, content in (("a.txt", plain), ("a.jsonl", lines)):
        (path / f"{name}.gz").write_bytes(gzip.compress(content))
        (path / f"{name}.xz").write_bytes(lzma.compress(content))
        with pyarrow.CompressedOutputStream(str(path / f"{name}.zst"), "zstd") as file:
            file.write(content)
    table = pyarrow.table({"id": list(range(len(TEXTS))), "text": TEXTS})
    pyarrow.parquet.write_table(table, path / "a.parquet", row_group_size=37, compression="zstd")
    ok("tokenizer", "train", "--data", path / "a.txt", "--vocab", 305, "--out", path / "t.model")
    return path


def content(directory):
    index = json.loads((directory / "index.json").read_text())
    return index["fingerprint"], index["documents"]


@pytest.mark.parametrize("tokenizer", ["bytes", "t.model"])
def test_every_form_gives_the_same_tokens(corpus, tmp_path, tokenizer):
    spec = tokenizer if tokenizer == "bytes" else corpus / tokenizer
    files = sorted(path for path in corpus.iterdir() if path.name.startswith("a."))
    assert len(files) == 9
    found = {}
    for file in files:
        ok("data", "pack", file, "--out", tmp_path / file.name, "--tokenizer", spec, "--threads", 2)
        found[file.name] = content(tmp_path / file.name)
    assert set(found.values()) == {found["a.txt"]}, found
    assert found["a.txt"][1] == len(TEXTS)


def test_shards_are_trained_on(corpus, tmp_path):
    ok("data", "pack", corpus / "a.jsonl", "--out", tmp_path / "shards", "--shard-tokens", 9000)
    assert "whole" in ok("data", "check", tmp_path / "shards", "--tokenizer", "bytes")
    ok("train", "--data", tmp_path / "shards", "--out", tmp_path / "run", *settings(*TINY, "train.steps=30"))
    lines = [line for line in metrics(tmp_path / "run") if "loss" in line]
    assert lines[-1]["bits_per_byte"] < 0.75 * lines[0]["bits_per_byte"]
    other = run("train", "--data", tmp_path / "shards", "--out", tmp_path / "r", *settings(*TINY, f"data.tokenizer={corpus / 't.model'}"))
    assert other.returncode == 1 and "another tokenizer" in other.stderr


def test_damaged_shards_are_noticed(corpus, tmp_path):
    ok("data", "pack", corpus / "a.txt", "--out", tmp_path / "s", "--shard-tokens", 20000)
    files = sorted((tmp_path / "s").glob("[is]*"))
    assert len(files) >= 2
    chance = random.Random(5)
    for file in files:
        whole = file.read_bytes()
        for _ in range(3):
            at = chance.randrange(len(whole))
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1:])
            assert run("data", "check", tmp_path / "s").returncode == 1, (file, at)
        file.write_bytes(whole[: len(whole) // 2])
        assert run("data", "check", tmp_path / "s").returncode == 1
        file.write_bytes(whole)
    assert run("data", "check", tmp_path / "s").returncode == 0


def test_damaged_parquet_files_end_in_an_error(corpus, tmp_path):
    whole = (corpus / "a.parquet").read_bytes()
    chance = random.Random(6)
    refused = 0
    for number in range(24):
        # The end holds the description of the file; the rest is data.
        least = len(whole) - 2000 if number % 2 else 0
        bad = bytearray(whole)
        for _ in range(1 + number % 4):
            bad[chance.randrange(max(least, 0), len(whole))] ^= 1 << chance.randrange(8)
        (tmp_path / "x.parquet").write_bytes(bad[: chance.randrange(len(bad))] if number % 6 == 5 else bad)
        result = run("data", "pack", tmp_path / "x.parquet", "--out", tmp_path / f"o{number}")
        assert result.returncode in (0, 1), (number, result.returncode, result.stderr)
        refused += result.returncode
    assert refused > 8


def test_bad_input_is_named(corpus, tmp_path):
    def wrong(*args):
        result = run(*args)
        assert result.returncode == 1, result.stdout
        return result.stderr

    assert "there are: id, text" in wrong("data", "pack", corpus / "a.parquet", "--out", tmp_path / "o", "--field", "body")
    assert "holds no text" in wrong("data", "pack", corpus / "a.parquet", "--out", tmp_path / "o", "--field", "id")
    (tmp_path / "x.parquet").write_bytes(b"nonsense" * 100)
    assert "x.parquet" in wrong("data", "pack", tmp_path / "x.parquet", "--out", tmp_path / "o")
    (tmp_path / "x.jsonl.bz2").write_bytes(b"BZh")
    assert ".bz2" in wrong("data", "pack", tmp_path / "x.jsonl.bz2", "--out", tmp_path / "o")
    (tmp_path / "empty").mkdir()
    assert "no complete set" in wrong("data", "check", tmp_path / "empty")
    assert "neither token shards nor" in wrong("train", "--data", tmp_path / "empty", "--out", tmp_path / "r")
    (tmp_path / "y.jsonl").write_text('{"text": "good"}\n{"text": "cut\n' + "[]\n")
    out = ok("data", "pack", tmp_path / "y.jsonl", "--out", tmp_path / "y")
    assert "2 malformed lines" in out and "y.jsonl:2" in out


def test_two_processes_do_not_pack_into_one_directory(corpus, tmp_path):
    (tmp_path / "large.txt").write_bytes((corpus / "a.txt").read_bytes() * 300)
    command = ["data", "pack", tmp_path / "large.txt", "--out", tmp_path / "s", "--threads", 1]
    first = subprocess.Popen([PROGRAM, *map(str, command)], stdout=subprocess.DEVNULL)
    while not (tmp_path / "s" / ".lock").exists():
        time.sleep(0.001)
    time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)
    second = run(*command)
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 1
    assert "another process is packing in" in second.stderr and "another --out" in second.stderr
    assert first.wait(timeout=60) == 0
    assert "whole" in ok("data", "check", tmp_path / "s")


def test_a_directory_that_cannot_be_written_is_named(corpus, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", disk], capture_output=True).returncode == 0
    if not mounted:
        disk.chmod(0o555)
    try:
        result = run("data", "pack", corpus / "a.txt", "--out", disk / "s")
        assert result.returncode == 1 and str(disk / "s") in result.stderr
        assert "Read-only file system" in result.stderr or "Permission denied" in result.stderr
    finally:
        if mounted:
            subprocess.run(["umount", disk], check=True)


def test_help_shows_an_example():
    for command in (["data"], ["data", "pack"], ["data", "check"]):
        assert "Example: ./lattice data" in ok(*command, "--help")
