"""Sites of `./lattice export-web` for tests: made, served by Python's own web server, and asked for text."""

import contextlib
import json
import os
import platform
import re
import subprocess
import sys

from cli_program import ROOT
from serve_program import RUNNER

# Every instruction set has an order of its own in which it adds. That of SSE4 is WebAssembly's: the same bits.
PINNED = {"LATTICE_ISA": "sse4"} if platform.machine() == "x86_64" else {}
MODULE = ROOT / "build" / "web" / "bin" / "lattice_web.wasm"


def export(model, out, *args):
    command = [sys.executable, ROOT / "tools" / "web", model, "--out", out, *args]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


@contextlib.contextmanager
def hosted(directory):
    """The address of `python3 -m http.server` for a directory."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "-d", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield "http://127.0.0.1:" + re.search(r"port (\d+)", process.stdout.readline())[1] + "/"
    finally:
        process.kill()
        process.wait()


def native_text(model, prompt, seed, tokens, temperature=0.8):
    """What lattice-run writes behind a prompt."""
    command = [RUNNER, "generate", "--model", model, "--prompt", prompt, "--seed", seed, "--tokens", tokens, "--temperature", temperature,
               "--threads", 1, "--json"]
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, env=os.environ | PINNED)
    return json.loads(made.stdout)["text"]


def page_text(browser, prompt, seed, tokens, temperature=0.8):
    """What the model in the page writes behind a prompt."""
    request = dict(prompt=prompt, seed=seed, max_tokens=tokens, temperature=temperature, top_p=0.95)
    return browser.run(f"""(async () => {{
        const inside = document.querySelector("script[type=importmap]") !== null;
        const api = await import(inside ? "lattice/api.js" : new URL("page/api.js", document.baseURI).href);
        let text = "";
        for await (const chunk of api.stream("v1/completions", {json.dumps(request)})) text += chunk.choices[0]?.text ?? "";
        return text;
    }})()""")


def open_site(browser, address):
    browser.errors.clear()
    browser.show(1400, 900)
    browser.open(address)
    browser.until("document.querySelector('#branches button') !== null")


def complaint(browser, address):
    """The sentence of a page that cannot start."""
    browser.errors.clear()
    browser.open(address)
    browser.until("!document.getElementById('banner').hidden")
    assert browser.run("document.getElementById('facts').textContent") == "no model"
    assert browser.run("document.getElementById('main').inert"), "nothing can be clicked that needs a model"
    return browser.run("document.querySelector('#banner p').textContent")
