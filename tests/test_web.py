"""Sites that `./lattice export-web` makes, in a browser: the same page as the server's, the same tokens as lattice-run.
`./lattice test --web` builds the module that they need."""

import json
import shutil
import sys

import pytest
from browser import Browser
from cli_program import ROOT
from page_driver import browser, choose, count, model, needs_chromium, text, thrown, UNENDING, write  # noqa: F401
from test_page import (test_a_text_streams_and_the_memory_lights_up, test_chat_streams_and_stops, test_escape_stops_too,  # noqa: F401
                       test_fork_and_compare, test_rewind_forgets_and_the_same_seed_writes_the_same_again,
                       test_scrubbing_shows_the_memory_of_then, test_stop_ends_a_text_and_the_session_is_where_the_text_is)
from web_site import MODULE, complaint, export, hosted, native_text, open_site, page_text

sys.path.insert(0, str(ROOT / "tools"))

import web.site  # noqa: E402  (needs the path)

pytestmark = [needs_chromium, pytest.mark.skipif(not MODULE.is_file(), reason="the module is not built (./lattice test --web builds it)")]


@pytest.fixture(scope="module")
def site(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("web") / "site"
    made = export(model, out, "--to", "int8", "--name", "tiny")
    assert made.returncode == 0, made.stderr
    return out


@pytest.fixture(scope="module")
def address(site):
    with hosted(site) as running:
        yield running


@pytest.fixture
def page(browser, address):
    open_site(browser, address)
    choose(browser, **UNENDING)
    yield browser
    assert thrown(browser) == [], "nothing was thrown, and the security policy held"


PROMPTS = ["the memory ", "", "é and what is more"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_page_writes_what_lattice_run_writes(page, site, seed):
    for prompt in PROMPTS:
        for temperature in (0, 0.8):
            assert page_text(page, prompt, seed, 150, temperature) == native_text(site / "model", prompt, seed, 150, temperature)


@pytest.mark.parametrize("format", ["float32", "bf16"])
def test_other_formats_write_the_same_too(browser, model, tmp_path, format):
    assert export(model, tmp_path / "site", "--to", format).returncode == 0
    with hosted(tmp_path / "site") as address:
        open_site(browser, address)
        for seed in range(1, 11):
            assert page_text(browser, "the memory ", seed, 100) == native_text(tmp_path / "site" / "model", "the memory ", seed, 100)


def test_memory_is_told_and_nothing_is_asked_of_others(page, address):
    assert "tiny" in text(page, "#facts") and "runs in this page, in" in text(page, "#facts")
    asked = page.run("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert len(asked) > 5 and all(name.startswith(address) for name in asked)
    blocked = page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', error => error.name)")
    assert blocked == "TypeError", "the page's policy allows no other server"
    page.errors.clear()


def test_two_texts_at_once_do_not_mix(page, site):
    both = page.run("""(async () => {
        const api = await import(new URL("page/api.js", document.baseURI).href);
        const texts = ["", ""];
        const one = async (i) => {
            const request = {prompt: "the ", seed: i + 1, max_tokens: 60, temperature: 0.8, top_p: 0.95};
            for await (const chunk of api.stream("v1/completions", request)) texts[i] += chunk.choices[0]?.text ?? "";
        };
        await Promise.all([one(0), one(1)]);
        return texts;
    })()""")
    assert both == [native_text(site / "model", "the ", seed, 60) for seed in (1, 2)]


def spoilt(site, tmp_path, name, change):
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    (copy / name).write_bytes(change((copy / name).read_bytes()))
    return copy


def test_damaged_weights_are_named(browser, site, tmp_path):
    copy = spoilt(site, tmp_path, "model/model.safetensors", lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    with hosted(copy) as address:
        assert "model.safetensors is damaged" in complaint(browser, address)


def test_weights_that_are_cut_off_or_missing_are_named(browser, site, tmp_path):
    copy = spoilt(site, tmp_path, "model/model.safetensors", lambda data: data[: len(data) // 2])
    with hosted(copy) as address:
        assert "model.safetensors is damaged" in complaint(browser, address)
        (copy / "model" / "model.safetensors").unlink()
        assert "model.safetensors cannot be loaded (status 404)" in complaint(browser, address)


def test_a_damaged_module_is_named(browser, site, tmp_path):
    copy = spoilt(site, tmp_path, "page/lattice_web.wasm", lambda data: data[: len(data) // 2])
    with hosted(copy) as address:
        assert "lattice_web.wasm is damaged" in complaint(browser, address)


def without(browser, script):
    """Runs a script in every page before the page's own; returns what takes it back."""
    number = browser.send("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
    return lambda: browser.send("Page.removeScriptToEvaluateOnNewDocument", identifier=number)


@pytest.mark.parametrize("lack", ["WebAssembly.validate = () => false", "delete globalThis.WebAssembly"])
def test_a_browser_without_simd_gets_a_sentence(browser, address, lack):
    restore = without(browser, lack)
    try:
        assert "lacks WebAssembly with SIMD" in complaint(browser, address)
    finally:
        restore()


@pytest.mark.parametrize("pages", [128, 272])
def test_a_browser_with_too_little_memory_gets_a_sentence(address, pages):
    """Pages of 64 KiB: the module starts with 256 of them, and the model needs more."""
    poor = Browser(f"--js-flags=--wasm-max-mem-pages={pages}")
    try:
        assert "too little memory" in complaint(poor, address)
    finally:
        poor.close()


def test_a_single_file_opens_from_disk(browser, model, site, tmp_path):
    file = tmp_path / "tiny.html"
    made = export(model, file, "--single-file", "--name", "tiny")
    assert made.returncode == 0, made.stderr
    open_site(browser, f"file://{file}")
    for seed in (1, 2):
        assert page_text(browser, "the memory ", seed, 100) == native_text(site / "model", "the memory ", seed, 100)
    choose(browser, **UNENDING)
    write(browser, "the memory", tokens=20)
    assert count(browser) == 30
    assert thrown(browser) == []
    assert export(model, tmp_path / "again.html", "--single-file", "--name", "tiny").returncode == 0
    assert (tmp_path / "again.html").read_bytes() == file.read_bytes(), "the same model gives the same file"


def test_a_single_file_with_damaged_weights_says_so(browser, model, tmp_path):
    file = tmp_path / "tiny.html"
    assert export(model, file, "--single-file").returncode == 0
    html = file.read_text()
    at = html.index('id="file-model.safetensors">') + len('id="file-model.safetensors">') + 4000
    file.write_text(html[:at] + ("A" if html[at] != "A" else "B") + html[at + 1:])
    sentence = complaint(browser, f"file://{file}")
    assert "model.safetensors is damaged" in sentence


def test_what_is_there_is_not_overwritten(model, site, tmp_path):
    again = export(model, site)
    assert again.returncode == 1 and "exists already" in again.stderr
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("mine")
    other = export(model, tmp_path / "letters", "--force")
    assert other.returncode == 1 and "is not a site" in other.stderr


def test_a_tokenizer_without_a_library_in_browsers_is_refused(tmp_path):
    (tmp_path / "lattice_tokenizer.json").write_text(json.dumps({"kind": "sentencepiece"}))
    with pytest.raises(web.site.SiteError, match="tokenizer is sentencepiece, whose library does not exist for WebAssembly"):
        web.site.model_files(tmp_path)


def test_a_run_that_does_not_exist_is_an_error_with_its_name(tmp_path):
    refused = export(tmp_path / "nothing", tmp_path / "out")
    assert refused.returncode != 0 and "nothing" in refused.stderr
    assert not (tmp_path / "out").exists()
