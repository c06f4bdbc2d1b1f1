"""A site that runs a model inside the browser: the server's page, the runtime as WebAssembly, and the model's files.

A site is a folder for any web server, or one HTML file with everything inside, which opens from disk. Either way the page
finds its description in the element with the id "site" (src/server/page/wasm_engine.js), and its security policy forbids
connections to anywhere else."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

PAGE_STYLES = ("base.css", "views.css")
WORKER_SCRIPTS = ("lattice_web.js", "worker.js")
MODULE = "lattice_web.wasm"
# What a model needs, beside its config and weights, by the kind of its tokenizer.
TOKENIZER_FILES = {"bytes": (), "bpe": ("vocab.json", "merges.txt"), "tokenizer.json": ("tokenizer.json",)}
OPTIONAL_FILES = ("tokenizer_config.json", "chat_template.jinja")  # chat templates
WEIGHTS = "model.safetensors"
# Browsers refuse strings of 512 MiB, and base64 adds a third.
LARGEST_SINGLE_FILE = 300 << 20


class SiteError(Exception):
    """What the user is to read."""


def model_files(checkpoint):
    """The files of a checkpoint that the page needs, by name."""
    kind = json.loads((checkpoint / "lattice_tokenizer.json").read_text())["kind"]
    if kind not in TOKENIZER_FILES:
        raise SiteError(f"the model's tokenizer is {kind}, whose library does not exist for WebAssembly; models with the tokenizers "
                        f"{', '.join(TOKENIZER_FILES)} can be exported")
    names = ["config.json", "lattice_tokenizer.json", *TOKENIZER_FILES[kind], WEIGHTS]
    names += [name for name in OPTIONAL_FILES if (checkpoint / name).is_file()]
    return {name: (checkpoint / name).read_bytes() for name in names}


def described(name, content, **where):
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **where}


def policy(*rules):
    rules = ("default-src 'none'", "base-uri 'none'", "form-action 'none'", *rules)
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">\n'


def page_with(index, head, site):
    """The page with a description of its site; `head` goes to the beginning of its head."""
    description = json.dumps(site).replace("<", "\\u003c")
    index = index.replace('<meta charset="utf-8">\n', f'<meta charset="utf-8">\n{head}', 1)
    return index.replace("</head>", f'<script type="application/json" id="site">{description}</script>\n</head>', 1)


def folder(name, page, runtime, model):
    """The files of a site, by path. `page` and `runtime` are folders, `model` is {name: content}."""
    files = {f"page/{path.name}": path.read_bytes() for path in sorted(page.iterdir()) if path.name != "index.html"}
    files |= {f"page/{file}": (runtime / file).read_bytes() for file in (WORKER_SCRIPTS[0], MODULE)}
    files |= {f"model/{file}": content for file, content in model.items()}
    site = {"name": name, "scripts": [{"path": f"page/{script}"} for script in WORKER_SCRIPTS],
            "module": described(MODULE, files[f"page/{MODULE}"], path=f"page/{MODULE}"),
            "files": [described(file, content, path=f"model/{file}") for file, content in model.items()]}
    head = policy("script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'")
    return files | {"index.html": page_with((page / "index.html").read_text(), head, site).encode()}


def packed(identifier, content):
    """An element that holds a file. The time of gzip's header is left out: the same site has the same bytes."""
    data = base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{identifier}">{data}</script>\n'


def data_address(kind, content):
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def with_styles(index, page):
    for name in PAGE_STYLES:
        index = index.replace(f'<link rel="stylesheet" href="page/{name}">', f"<style>\n{(page / name).read_text()}</style>")
    icon = data_address("image/svg+xml", (page / "icon.svg").read_bytes())
    return index.replace('"page/icon.svg"', f'"{icon}"')


def with_scripts(index, page):
    """The page's modules behind names that need no server: from a file, a module may import data, but no other file."""
    names = {}
    for path in sorted(page.glob("*.js")):
        if path.name in WORKER_SCRIPTS:
            continue
        text = re.sub(r'( from |^import )"\./(\w+\.js)"', r'\1"lattice/\2"', path.read_text(), flags=re.MULTILINE)
        names[f"lattice/{path.name}"] = data_address("text/javascript", text.encode())
    scripts = f'<script type="importmap">{json.dumps({"imports": names})}</script>\n<script type="module">import "lattice/app.js";</script>'
    return index.replace('<script type="module" src="page/app.js"></script>', scripts)


def single_file(name, page, runtime, model):
    """The whole site as one HTML text."""
    size = sum(map(len, model.values()))
    if size > LARGEST_SINGLE_FILE:
        raise SiteError(f"the model has {size / 1e6:,.0f} MB; at most {LARGEST_SINGLE_FILE / 1e6:,.0f} MB fit into one file. Leave out --single-file")
    scripts = [(runtime if file == WORKER_SCRIPTS[0] else page) / file for file in WORKER_SCRIPTS]
    module = (runtime / MODULE).read_bytes()
    site = {"name": name, "scripts": [{"inline": f"file-{path.name}"} for path in scripts],
            "module": described(MODULE, module, inline=f"file-{MODULE}"),
            "files": [described(file, content, inline=f"file-{file}") for file, content in model.items()]}
    contents = {path.name: path.read_bytes() for path in scripts} | {MODULE: module} | model
    elements = "".join(packed(f"file-{file}", content) for file, content in contents.items())
    head = policy("script-src 'unsafe-inline' data: blob: 'wasm-unsafe-eval'", "worker-src blob:", "style-src 'unsafe-inline'", "img-src data:")
    index = with_scripts(with_styles((page / "index.html").read_text(), page), page)
    return page_with(index.replace("</body>", f"{elements}</body>", 1), head, site)


def unpacked(html):
    """The model's files in a page of single_file, by name, checked against its description."""
    site = json.loads(re.search(r'<script type="application/json" id="site">(.*?)</script>', html)[1])
    files = {}
    for file in [site["module"], *site["files"]]:
        data = re.search(rf'id="{re.escape(file["inline"])}">([^<]*)<', html)[1]
        files[file["name"]] = gzip.decompress(base64.b64decode(data))
        if hashlib.sha256(files[file["name"]]).hexdigest() != file["sha256"]:
            raise SiteError(f"{file['name']} is not what the page says it is")
    return files


def write(files, out: Path):
    for path, content in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
