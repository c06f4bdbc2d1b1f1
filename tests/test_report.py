"""The report page and TensorBoard's event files of a run, read by a parser of their own."""

import shutil
import struct

import pytest
from browser import CHROMIUM, Browser
from cli_program import metrics, ok, run, train, write_text


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    write_text(path / "text.txt")
    for mixer in ("lattice_dec", "deltanet"):
        train(path / "text.txt", path / mixer, f"model.mixer={mixer}", "model.layers=2", "train.eval_every=5")
    return path


def test_validation_says_what_the_memory_does(runs):
    lines = [line for line in metrics(runs / "lattice_dec") if "valid_loss" in line]
    assert len(lines) == 4
    for key in ("write", "novelty", "answer", "beta", "slot_similarity", "effective_rank"):
        assert all(len(line[key]) == 2 for line in lines), key
    assert 0 < lines[-1]["novelty"][0] <= 1


def test_the_page_is_written_and_runs_are_compared(runs, tmp_path):
    page = (runs / "lattice_dec" / "report.html").read_text()
    assert page.count("<svg viewBox") == 12 and "http" not in page and "<script" not in page
    out = ok("report", runs / "lattice_dec", runs / "deltanet", "--out", tmp_path / "both.html")
    assert "both.html" in out
    both = (tmp_path / "both.html").read_text()
    assert "deltanet" in both and "lattice_dec" in both and "2 runs compared" in both
    wrong = run("report", tmp_path)
    assert wrong.returncode == 1 and "no metrics.jsonl" in wrong.stderr
    assert run("report").returncode == 2
    assert "Example" in ok("report", "--help")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")
def test_no_column_is_cut_off(runs, tmp_path):
    names = [f"a-run-with-a-rather-long-name-{mixer}" for mixer in ("lattice_dec", "deltanet")]
    for name, mixer in zip(names, ("lattice_dec", "deltanet"), strict=True):
        shutil.copytree(runs / mixer, tmp_path / name)
    ok("report", *(tmp_path / name for name in names), "--out", tmp_path / "two.html")
    browser = Browser()
    try:
        for width in (1280, 1024):
            browser.show(width, 800)
            browser.open(f"file://{tmp_path / 'two.html'}")
            box = "document.querySelector('.table')"
            assert browser.run(f"{box}.scrollWidth <= {box}.clientWidth"), width
    finally:
        browser.close()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def records(data):
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == crc32c(data[:8])
        body = data[12:12 + size]
        assert struct.unpack("<I", data[12 + size:16 + size])[0] == crc32c(body)
        yield dict(fields(body))
        data = data[16 + size:]


def test_tensorboard_finds_the_numbers_of_the_metrics(runs):
    (file,) = (runs / "lattice_dec" / "tensorboard").glob("events.out.tfevents.*")
    events = list(records(file.read_bytes()))
    assert events[0][3] == b"brain.Event:2"
    found = {}
    for event in events[1:]:
        for number, value in fields(event.get(5, b"")):
            assert number == 1
            entry = dict(fields(value))
            found[entry[1].decode(), event[2]] = struct.unpack("<f", entry[2])[0]
    for line in metrics(runs / "lattice_dec"):
        for key, tag in (("loss", "train/loss"), ("valid_bits_per_byte", "valid/bits_per_byte")):
            if key in line:
                assert found[tag, line["step"]] == pytest.approx(line[key], rel=1e-6)
        for i, value in enumerate(line.get("novelty", [])):
            assert found[f"memory/novelty/layer_{i + 1}", line["step"]] == pytest.approx(value, rel=1e-6)
    assert len(found) > 100
