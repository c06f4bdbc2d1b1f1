"""The page of `lattice serve` in a headless Chromium, on a real server with a tiny model: fixtures and gestures of the
tests of the page, which import what they use."""

import json

import pytest
from browser import CHROMIUM, Browser
from cli_program import train, write_text
from serve_program import serve

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")

LAYERS, HEADS = 2, 2
UNENDING = dict(temperature=0.3, seed=1)  # warmer, a hardly trained model ends its text now and then


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("page")
    write_text(path / "text.txt")
    train(path / "text.txt", path / "tiny", f"model.layers={LAYERS}", f"model.heads={HEADS}", "model.width=64")
    return path / "tiny"


def train_with(mixer, path):
    write_text(path / "text.txt")
    train(path / "text.txt", path / "tiny", f"model.mixer={mixer}")
    return path / "tiny"


@pytest.fixture(scope="module")
def server(model):
    with serve(model) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    running = Browser()
    yield running
    running.close()


def open_page(browser, address, width=1400, height=900, dark=False):
    browser.errors.clear()
    browser.show(width, height, dark)
    browser.open(address)
    browser.until("document.querySelector('#branches button') !== null")
    choose(browser, **UNENDING)


def thrown(browser):
    """Errors but for answers that are no success, which the page is prepared for."""
    return [error for error in browser.errors if error.get("source") != "network"]


@pytest.fixture
def page(browser, server):
    open_page(browser, server.url)
    yield browser
    assert thrown(browser) == [], "nothing was thrown, and the security policy held"


def choose(page, **fields):
    for name, value in fields.items():
        page.run(f"document.querySelector('[name={name}]').value = {json.dumps(str(value))}")


def count(page, view="#text"):
    return page.run(f"document.querySelectorAll('{view} .token').length")


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def write(page, prompt, tokens=20):
    """Adds a prompt and waits for the model's tokens behind it."""
    choose(page, max_tokens=tokens)
    page.type("#prompt", prompt)
    page.click("#go")
    page.until("document.getElementById('stop').disabled && document.getElementById('prompt').value === ''")


def shades(page, selector):
    """How many different pixels a canvas has."""
    return page.run(f"""(() => {{
        const canvas = document.querySelector({json.dumps(selector)});
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(data.buffer)).size;
    }})()""")


def position(page):
    return page.run("document.getElementById('position').valueAsNumber")


