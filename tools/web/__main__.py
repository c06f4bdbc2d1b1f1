"""./lattice export-web: a trained model as a web page that needs no server.

    ./lattice export-web runs/book --to int8 --out site/
    python3 -m http.server -d site 8000
    ./lattice export-web runs/book --single-file --out book.html      # opens from disk

docs/web.md has more."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from web import site  # noqa: E402  (needs the path)

RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"
RUNTIME = ROOT / "build" / "web" / "bin"
PAGE = ROOT / "src" / "server" / "page"


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="./lattice export-web", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="RUN", help="run directory or checkpoint")
    parser.add_argument("--to", default="int8", choices=("int8", "bf16", "float32"), help="format of the weights (default: int8)")
    parser.add_argument("--out", type=Path, required=True, help="directory of the site, or file of --single-file")
    parser.add_argument("--single-file", action="store_true", help="one HTML file with everything inside, which opens from disk")
    parser.add_argument("--name", help="what the page calls the model (default: the name of RUN)")
    parser.add_argument("--force", action="store_true", help="replace what is at --out")
    return parser.parse_args(arguments)


def converted(options, to):
    """The model's files with weights of the format asked for."""
    command = [RUNNER, "convert", "--model", options.model, "--to", options.to, "--out", to]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stderr.replace("lattice-run convert", "lattice export-web"))
        sys.exit(done.returncode)
    return site.model_files(to)


def check_out(options):
    out = options.out
    if options.single_file and out.is_dir():
        raise site.SiteError(f"--out: {out} is a directory; --single-file writes a file, e.g. {out / 'index.html'}")
    used = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if used and not options.force:
        raise site.SiteError(f"--out: {out} exists already; choose another, or pass --force to replace it")
    if used and not options.single_file and not (out / "index.html").is_file():
        raise site.SiteError(f"--out: {out} is not a site, so --force does not replace it")


def megabytes(content):
    return f"{len(content) / 1e6:.2f} MB"


def export(options):
    check_out(options)
    name = options.name or Path(options.model).resolve().name
    with tempfile.TemporaryDirectory(prefix="lattice-web-") as folder:
        model = converted(options, Path(folder) / "model")
    parts = f"module {megabytes((RUNTIME / site.MODULE).read_bytes())}, weights {megabytes(model[site.WEIGHTS])}"
    if options.single_file:
        html = site.single_file(name, PAGE, RUNTIME, model).encode()
        site.write({options.out.name: html}, options.out.parent)
        print(f"{options.out}: {megabytes(html)} ({parts}, compressed); open it in a browser")
        return
    files = site.folder(name, PAGE, RUNTIME, model)
    site.write(files, options.out)
    total = sum(map(len, files.values())) / 1e6
    print(f"{options.out}: {total:.2f} MB ({parts}); any web server can serve it, e.g. python3 -m http.server -d {options.out} 8000")


def main(arguments):
    options = parsed(arguments)
    try:
        export(options)
    except (site.SiteError, OSError) as error:
        print(f"lattice export-web: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
