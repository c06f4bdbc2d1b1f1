"""Makes the pictures of the page in docs/img again, from a trained model:

    ./lattice train --config tiny --data data/austen/train --valid data/austen/valid --out runs/austen --set model.layers=4
    ./lattice python tests/page_pictures.py --model runs/austen

Sampling is seeded, so the same model gives the same pictures, but for the speed that stands on them."""

import argparse
import json
from pathlib import Path

from browser import Browser
from cli_program import ROOT
from page_driver import choose, open_page, write
from serve_program import serve

OPENING = "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.\n\n"
PICTURES = ROOT / "docs" / "img"


def sample(browser, **fields):
    """Settings of sampling, in the form and in the line that sums it up."""
    choose(browser, **fields)
    browser.run("document.querySelector('[name=temperature]').dispatchEvent(new Event('input', {bubbles: true}))")


def go_to(browser, position):
    """Moves the slider to a token and waits for the similarity of that moment, which the page asks the server for."""
    before = browser.run("document.getElementById('rank').textContent")
    browser.run(f"""(() => {{
        const slider = document.getElementById("position");
        slider.value = {position};
        slider.dispatchEvent(new Event("input", {{bubbles: true}}));
    }})()""")
    browser.until(f"document.getElementById('rank').textContent !== {json.dumps(before)}")


def memory(browser, address, file):
    open_page(browser, address, 1320, 850)
    sample(browser, temperature=0.4, seed=3)
    write(browser, OPENING, tokens=260)
    go_to(browser, 300)
    browser.run("scrollTo(0, 0)")
    browser.screenshot(file)


def comparison(browser, address, file):
    open_page(browser, address, 1320, 850, dark=True)
    sample(browser, temperature=0.4, seed=3)
    write(browser, OPENING, tokens=260)
    browser.click("#text .token:nth-child(200)")
    browser.click("#fork")
    browser.until("document.querySelectorAll('#branches [aria-pressed]').length === 2")
    sample(browser, temperature=0.6, seed=4)
    write(browser, " ", tokens=150)
    browser.click("#tab-compare")
    browser.until("document.querySelectorAll('#compare .side:last-child .token').length > 300")
    browser.run("scrollTo(0, 0)")
    browser.screenshot(file)


def phone(browser, address, file):
    open_page(browser, address, 390, 844)
    sample(browser, temperature=0.4, seed=3)
    write(browser, OPENING, tokens=120)
    browser.run("scrollTo(0, 0)")
    browser.screenshot(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0], epilog=__doc__.split("\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a run of ./lattice train, or any other model")
    parser.add_argument("--out", type=Path, default=PICTURES, help="where the pictures go (default: docs/img)")
    options = parser.parse_args()
    browser = Browser()
    try:
        for take, name in ((memory, "page-light"), (comparison, "page-compare-dark"), (phone, "page-phone")):
            with serve(options.model) as server:
                take(browser, server.url, options.out / f"{name}.png")
            print(options.out / f"{name}.png")
    finally:
        browser.close()


if __name__ == "__main__":
    main()
