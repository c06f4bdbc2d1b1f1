"""The page and its servers: one that goes away, one with a key, and models whose memory has less to show."""

import re

from page_driver import (  # noqa: F401
    UNENDING,
    browser,
    choose,
    count,
    model,
    needs_chromium,
    open_page,
    text,
    thrown,
    train_with,
    write,
)
from serve_program import serve

pytestmark = needs_chromium

KEY = "a-key-of-the-test-0123456789"


def test_a_server_that_goes_away_and_comes_back(browser, model):
    with serve(model) as server:
        open_page(browser, server.url)
        write(browser, "the memory", tokens=5)
        before = text(browser, "#text")
        choose(browser, max_tokens=60000)
        browser.click("#go")
        browser.until("document.querySelectorAll('#text .token').length > 20")
        server.process.kill()
        server.process.wait()
    browser.until("!document.getElementById('banner').hidden", seconds=10)
    assert re.search("connection (broke|ended)|does not answer", text(browser, "#banner p"))
    assert text(browser, "#text").startswith(before), "what was written stays"
    length = count(browser)
    browser.click("#banner button")
    browser.run("new Promise(done => setTimeout(done, 100))")
    assert not browser.run("document.getElementById('banner').hidden"), "it is still away"
    with serve(model, port=server.url.rsplit(":", 1)[1]):
        # The page finds out by itself.
        browser.until("document.querySelector('#banner button').textContent === 'Send it again'")
        browser.click("#banner button")
        browser.until("document.getElementById('banner').hidden")
        write(browser, "the", tokens=4)
        assert count(browser) == length + 7
        assert text(browser, "#text").startswith(before)


def test_a_key_is_asked_for_once(browser, model):
    with serve(model, key=KEY) as server:
        browser.open(server.url)
        browser.until("document.getElementById('key-dialog').open")
        browser.type("#key", KEY)
        browser.key("Enter", 13)
        browser.until("document.querySelector('#branches button') !== null")
        choose(browser, **UNENDING)
        write(browser, "the", tokens=4)
        assert count(browser) == 7
        assert not browser.run("document.getElementById('key-dialog').open")
        assert browser.run("localStorage.length + sessionStorage.length + document.cookie.length") == 0


def test_a_transformer_has_no_memory_to_show(browser, tmp_path):
    with serve(train_with("transformer", tmp_path)) as server:
        open_page(browser, server.url)
        write(browser, "the", tokens=6)
        assert count(browser) == 9
        assert browser.run("document.getElementById('memory').hidden")
        assert "transformer" in text(browser, "#no-memory") and not browser.run("document.getElementById('no-memory').hidden")
        assert thrown(browser) == []


def test_a_memory_without_novelty_shows_its_writes(browser, tmp_path):
    with serve(train_with("deltanet", tmp_path)) as server:
        open_page(browser, server.url)
        write(browser, "the", tokens=6)
        assert browser.run("document.querySelectorAll('#text .token.plain').length") == 9, "no token has a novelty"
        browser.click("#text .token")
        assert "novelty" not in text(browser, "#token-facts")
        assert not browser.run("document.getElementById('memory').hidden")
        assert thrown(browser) == []
