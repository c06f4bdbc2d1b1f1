"""A model in a web page against the same model outside: ./lattice bench web --model runs/austen.

Tokens a second of one text without traces in Chromium and by lattice-run with one thread, the time from opening the page to
a model that is ready, from disk by Python's web server, and the module's memory. Texts are compared first. The module is
built by ./lattice export-web, or by ./lattice test --web.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import measure  # noqa: E402  (needs the path)
from browser import CHROMIUM, Browser  # noqa: E402
from web_site import MODULE, PINNED, RUNNER, export, hosted, native_text, open_site, page_text  # noqa: E402

PROMPT = "Captain Wentworth"


def native_rate(model, tokens):
    command = [RUNNER, "generate", "--model", model, "--prompt", PROMPT, "--tokens", tokens, "--seed", 1, "--threads", 1, "--json"]
    made = json.loads(subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout)
    return made["tokens"] / made["seconds"]


def page_rate(browser, tokens):
    """Tokens a second from the first token to the last, as a reader of the stream sees them."""
    return browser.run(f"""(async () => {{
        const api = await import(new URL("page/api.js", document.baseURI).href);
        const request = {{prompt: {json.dumps(PROMPT)}, seed: 1, max_tokens: {tokens}, temperature: 0.8, top_p: 0.95, logprobs: 0}};
        let count = 0, began = 0, last = 0;
        for await (const chunk of api.stream("v1/completions", request)) {{
            last = performance.now();
            if (began === 0) began = last;
            else count += chunk.choices[0]?.logprobs?.tokens.length ?? 0;
        }}
        return 1000 * count / (last - began);
    }})()""")


def loading(browser, address):
    """Seconds from opening the page to a session, and what the page says about itself."""
    begin = time.perf_counter()
    open_site(browser, address)
    return time.perf_counter() - begin, browser.run("document.getElementById('facts').textContent")


def compare(site, browser, address, tokens, rounds):
    loads = []
    for _ in range(rounds):
        seconds, facts = loading(browser, address)
        loads.append(seconds)
    same = sum(page_text(browser, PROMPT, seed, 200) == native_text(site / "model", PROMPT, seed, 200) for seed in range(1, 11))
    if same < (10 if PINNED else 5):  # only x86-64 has the bits of a page
        raise measure.WrongResult(f"{10 - same} of 10 texts differ from those of lattice-run")
    # In turn, so that both see the same load of the machine.
    rates = [(native_rate(site / "model", tokens), page_rate(browser, tokens)) for _ in range(rounds)]
    native, page = (statistics.median(column) for column in zip(*rates))
    return dict(native_tokens_per_second=native, page_tokens_per_second=page, share=page / native, rates=rates,
                load_seconds=statistics.median(loads), loads=loads, facts=facts, texts_compared=10, same_texts=same, tokens=tokens)


def main():
    parser = measure.arguments(__doc__, "./lattice bench web --model runs/austen")
    parser.add_argument("--model", required=True, help="run directory or checkpoint")
    parser.add_argument("--to", default="int8", help="format of the weights (default int8)")
    parser.add_argument("--tokens", type=int, default=2000, help="tokens of a text (default 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default 5)")
    options = measure.parse(parser)
    out = measure.Output(options.json)
    if not MODULE.is_file() or CHROMIUM is None:
        sys.exit("lattice bench web: needs Chromium (Debian: apt-get install chromium) and the module, which ./lattice test --web builds")
    with tempfile.TemporaryDirectory(prefix="lattice-bench-web-") as folder:
        site = Path(folder) / "site"
        made = export(options.model, site, "--to", options.to)
        if made.returncode != 0:
            sys.exit(made.stderr)
        browser = Browser()
        try:
            with hosted(site) as address:
                figures = dict(bench="web", format=options.to, **compare(site, browser, address, options.tokens, options.rounds))
        finally:
            browser.close()
    out.say(measure.table(["", "lattice-run, one thread", "page", "page / lattice-run"], [
        ["tokens/s", f"{figures['native_tokens_per_second']:,.0f}", f"{figures['page_tokens_per_second']:,.0f}", f"{100 * figures['share']:.0f} %"]]))
    out.say(f"{figures['same_texts']} of {figures['texts_compared']} texts of 200 tokens are the same")
    out.say(f"ready after {figures['load_seconds']:.2f} s; {figures['facts']}")
    out.finish(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
