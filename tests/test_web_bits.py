"""A page computes the bits of lattice-run under LATTICE_ISA=sse4, whose vectors are those of WebAssembly: the module runs in
Node.js here, without a browser, and every log-probability must be the same number. `./lattice test --web` builds the module."""

import json
import platform
import shutil
import subprocess
import sys
import urllib.request

import pytest
from cli_program import ROOT, train, write_text
from serve_program import RUNNER, serve
from web_site import MODULE, PINNED

sys.path.insert(0, str(ROOT / "tools"))

from web import site  # noqa: E402  (needs the path)

pytestmark = [pytest.mark.skipif(not MODULE.is_file(), reason="the module is not built (./lattice test --web builds it)"),
              pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
              pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has an instruction set with the vectors of WebAssembly")]

# One of every way in which a block makes its numbers.
MIXERS = {"lattice_dec": (), "lattice_enc": (), "mamba2": (), "gla": (), "mlstm": (), "ttt": (), "transformer": (),
          "lattice_dec+window": ("model.block=attention", "model.window=16")}


def request(prompt, seed, tokens, temperature=0.8):
    return dict(prompt=prompt, seed=seed, max_tokens=tokens, temperature=temperature, top_p=0.95, logprobs=5, stream=True)


def told(chunks):
    """A text, its tokens with their log-probabilities, and the most likely others, however the chunks were cut."""
    text, tokens = "", []
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        text += choice["text"]
        logprobs = choice.get("logprobs") or dict(tokens=[], token_logprobs=[], top_logprobs=[])
        tokens += zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True)
    return text, tokens


def of_the_module(model, requests):
    asked = json.dumps([dict(path="/v1/completions", body=body) for body in requests])
    done = subprocess.run(["node", str(ROOT / "tests" / "web_module.js"), str(MODULE.parent), str(model)], input=asked,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [told(chunks) for chunks in json.loads(done.stdout)]


def of_lattice_run(model, requests, monkeypatch, isa):
    monkeypatch.setenv("LATTICE_ISA", isa)
    texts = []
    with serve(model) as running:
        for body in requests:
            asked = urllib.request.Request(running.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=120) as answer:
                lines = answer.read().decode().splitlines()
            texts.append(told([json.loads(line[6:]) for line in lines if line.startswith("data: {")]))
    return texts


def converted(model, to, form):
    rounded = ["--no-calibration"] if form == "int4" else []
    command = [RUNNER, "convert", "--model", model, "--to", form, "--out", to, *rounded]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return to


@pytest.fixture(scope="module")
def austen(tmp_path_factory):
    """The model of results/web, without the module that the page has."""
    folder = tmp_path_factory.mktemp("austen")
    for name, content in site.unpacked((ROOT / "results" / "web" / "austen.html").read_text()).items():
        if name != site.MODULE:
            (folder / name).write_bytes(content)
    return folder


def test_twenty_texts_in_int8_have_the_same_bits(austen, monkeypatch):
    requests = [request("Captain Wentworth", seed, 200) for seed in range(1, 21)]
    here = of_the_module(austen, requests)
    assert [len(tokens) for _, tokens in here] == [200] * 20
    assert here == of_lattice_run(austen, requests, monkeypatch, PINNED["LATTICE_ISA"])


def test_other_instruction_sets_have_other_bits(austen, monkeypatch):
    requests = [request("Captain Wentworth", 1, 50)]
    if "avx2" not in subprocess.run([RUNNER, "--version"], capture_output=True, text=True).stdout:
        pytest.skip("this CPU has no AVX2")
    assert of_the_module(austen, requests) != of_lattice_run(austen, requests, monkeypatch, "avx2"), "the comparison above would see it"


@pytest.mark.parametrize("mixer", MIXERS)
def test_every_kind_of_block_has_the_same_bits(mixer, tmp_path, monkeypatch):
    write_text(tmp_path / "text.txt")
    train(tmp_path / "text.txt", tmp_path / "run", f"model.mixer={mixer}", "model.layers=2", "model.width=64", "model.heads=2",
          *MIXERS[mixer])
    requests = [request("the memory ", 1, 100), request("é and what is more", 2, 60, temperature=0)]
    for form in ("float32", "bf16", "int8", "int4"):
        model = converted(tmp_path / "run", tmp_path / form, form)
        assert of_the_module(model, requests) == of_lattice_run(model, requests, monkeypatch, PINNED["LATTICE_ISA"]), form
