"""The model's page in results/web is what its manifest says, and runs as it is: no build of WebAssembly is needed."""

import hashlib
import json
import sys

import pytest
from cli_program import ROOT
from page_driver import browser, choose, needs_chromium, shades, thrown, write  # noqa: F401
from web_site import native_text, open_site, page_text

sys.path.insert(0, str(ROOT / "tools"))

from web import site  # noqa: E402  (needs the path)

FOLDER = ROOT / "results" / "web"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
PAGE = FOLDER / MANIFEST["file"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The model inside the page as a checkpoint."""
    folder = tmp_path_factory.mktemp("web-file")
    for name, content in site.unpacked(PAGE.read_text()).items():
        (folder / name).write_bytes(content)
    return folder


def test_the_file_is_the_one_of_the_manifest():
    content = PAGE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == MANIFEST["sha256"]
    assert len(content) == MANIFEST["bytes"] <= 3_000_000


def test_the_files_inside_are_those_of_the_manifest(checkpoint):
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in checkpoint.iterdir()}
    assert digests == MANIFEST["files"]


@needs_chromium
def test_it_opens_from_disk_and_writes_what_lattice_run_writes(browser, checkpoint):
    open_site(browser, f"file://{PAGE}")
    for seed in (1, 2, 3):
        assert page_text(browser, "Captain Wentworth", seed, 200) == native_text(checkpoint, "Captain Wentworth", seed, 200)
    choose(browser, temperature=0.4, seed=3)
    write(browser, "It is a truth universally acknowledged", tokens=60)
    assert shades(browser, "#heads") > 20 and shades(browser, "#raster") > 20
    assert thrown(browser) == []
