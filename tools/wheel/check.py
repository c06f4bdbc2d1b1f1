"""`./lattice test --wheel`: builds the wheel by `pip wheel .` and uses it from an empty directory, in environments of its own.

The first has this Python and torch: everything. The others have each Python from 3.10 to 3.14 that is installed (on the PATH, or
by pyenv), and no torch: the runtime and the command. With --operators they have torch as well, and the operators are used.
"""

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = [f"3.{minor}" for minor in range(10, 15)]
SETTINGS = ["model.layers=1", "model.width=32", "train.seq_len=64", "train.batch_tokens=256", "train.warmup=2", "train.steps=30",
            "train.save_every=0", "train.eval_every=0", "train.precision=fp32"]

OPERATORS = """
import torch, lattice
unit = torch.nn.functional.normalize
q, k = torch.randn(2, 1, 40, 2, 8).unbind()
k = k.requires_grad_()
state = unit(torch.randn(1, 2, 8, 8), dim=-1)
y, _ = lattice.scan(unit(q, dim=-1), unit(k, dim=-1), torch.randn(1, 40, 2, 8), torch.rand(1, 40, 2), state=state)
y.sum().backward()
assert torch.isfinite(k.grad).all() and k.grad.abs().max() > 0
assert "site-packages" in lattice.__file__
"""
RUNTIME = """
import sys
from lattice.runtime import Model, Sampling
model = Model.load(sys.argv[1])
session = model.session("the memory")
fork = session.fork()
text = session.generate(30, Sampling(temperature=0))
assert fork.generate(30, Sampling(temperature=0)) == text and "torch" not in sys.modules
print(text)
"""


# What the libraries and programs of a wheel may ask the system for: the C and C++ libraries and zlib, which manylinux promises.
# torch's own come with torch.
SYSTEM = r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z)\.so\.\d+|ld-linux-x86-64\.so\.2|lib(torch_cpu|torch|c10)\.so|libgomp\.so\.1"


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, **options)
    if result.returncode:
        sys.exit(f"wheel: failed ({result.returncode}): {' '.join(map(str, command))[:300]}\n{result.stdout}")
    return result.stdout


def say(text):
    print(f"wheel: {text}", flush=True)


def build(folder):
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    say(f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
    if "-py3-none-manylinux_" not in wheel.name:
        sys.exit("wheel: expected a py3-none-manylinux wheel")
    return wheel


def check_needs(folder, wheel):
    """Every library that something in the wheel needs is in the wheel, or on every Linux."""
    inside = folder / "inside"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(inside)
    files = [path for path in inside.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    own = {path.name for path in files}
    for path in files:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path)))
        missing = [name for name in sorted(needed - own) if not re.fullmatch(SYSTEM, name)]
        if missing:
            sys.exit(f"wheel: {path.name} needs {', '.join(missing)} of the system it was built on")
    say(f"{len(files)} libraries and programs need nothing but each other, torch, zlib, and the C and C++ libraries")


class Environment:
    """A virtual environment with the wheel in it. Commands run in an empty directory, without what the caller's has."""

    def __init__(self, folder, python, wheel, *requirements, deps=True):
        run(python, "-m", "venv", "--clear", folder)
        self.bin, self.empty = folder / "bin", folder / "empty"
        self.empty.mkdir()
        more = [] if deps else ["--no-deps"]
        run(self.bin / "python", "-m", "pip", "install", "-q", *more, wheel, *requirements)

    def run(self, program, *args):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LATTICE", "LD_"))}
        return run(self.bin / program, *args, cwd=self.empty, env=clean)

    def python(self, code, *args):
        return self.run("python", "-c", code, *args)


def check_everything(folder, wheel):
    """Returns a model and the text it writes."""
    torch = importlib.metadata.version("torch")
    here = Environment(folder / "torch", sys.executable, wheel, f"torch=={torch}")
    here.python(OPERATORS)
    text = here.empty / "text.txt"
    text.write_text("".join(f"the memory holds {i % 10} slots and forgets {i * i % 7}\n" for i in range(500)))
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    here.run("lattice", "train", "--data", text, "--out", "run", "--config", "tiny", "--threads", 2, *settings)
    model = here.empty / "run"
    written = here.run("lattice", "generate", "--model", model, "--prompt", "the memory", "--tokens", 30, "--temperature", 0)
    if here.python(RUNTIME, model).strip("\n") != written.strip("\n"):
        sys.exit("wheel: lattice.runtime and lattice generate write different texts")
    listed = here.run("lattice", "--help")
    if not all(f"\n  {name} " in listed for name in ("train", "generate", "serve")):
        sys.exit(f"wheel: lattice --help lists no train, generate or serve:\n{listed}")
    say(f"operators, train, generate and runtime work: Python {sys.version.split()[0]}, torch {torch}")
    return model, written


def interpreter(version):
    """A Python of that version that can make environments, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))]
    code = f"import venv, ensurepip, sys; assert '%d.%d' % sys.version_info[:2] == '{version}'"
    return next((path for path in found if path and not subprocess.run([path, "-c", code], capture_output=True).returncode), None)


def check_python(folder, wheel, version, model, written, operators):
    """The runtime and the command without torch; with `operators` also those, with torch."""
    python = interpreter(version)
    if python is None:
        say(f"Python {version} is not installed here: not checked")
        return
    there = Environment(folder / f"python{version}", python, wheel, deps=False)
    run(there.bin / "python", "-m", "compileall", "-q", *there.bin.parent.glob("lib/python*/site-packages/lattice"))
    if there.python(RUNTIME, model).strip("\n") != written.strip("\n"):
        sys.exit(f"wheel: Python {version} writes another text")
    there.run("lattice", "inspect", "--config", "tiny")
    exact = there.python("import sys; print(sys.version.split()[0])").strip()
    say(f"runtime and command work without torch: Python {exact}")
    if operators:
        run(there.bin / "python", "-m", "pip", "install", "-q", wheel)
        there.python(OPERATORS)
        say(f"operators work: Python {exact}, torch {there.python('import torch; print(torch.__version__)').strip()}")


def main():
    parser = argparse.ArgumentParser(prog="./lattice python tools/wheel/check.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=Path, help="check this wheel instead of building one")
    parser.add_argument("--operators", action="store_true",
                        help="install torch for every Python (0.8 GB each, 5 GB where an index has its CUDA build alone) and use the operators")
    parser.add_argument("--pythons", default=",".join(VERSIONS), help="versions to look for, separated by commas (default: %(default)s)")
    options = parser.parse_args()
    folder = ROOT / "build" / "wheel-check"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wheel = options.wheel.resolve() if options.wheel else build(folder)
    check_needs(folder, wheel)
    model, written = check_everything(folder, wheel)
    for version in options.pythons.split(","):
        check_python(folder, wheel, version, model, written, options.operators)


if __name__ == "__main__":
    main()
