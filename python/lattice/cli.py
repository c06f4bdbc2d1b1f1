"""The `lattice` command of an installed wheel: runs the programs inside it.

There are two, as in the source tree: lattice-run needs no torch and starts at once; lattice trains. A subcommand that both
have is run by the first.
"""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from lattice._library import find

_RUNNER, _TRAINER = "lattice-run", "lattice"
_HELP = """Lattice: a recurrent memory for sequence models, exact and fast on CPUs.

Usage: lattice <subcommand> [arguments]
"""


def main() -> None:
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help", "help"):
        print(_HELP)
        print("\n".join(f"  {name:<10} {text}" for name, text in sorted(_all_subcommands().items())))
        print("\nEvery subcommand takes --help. Exit code: 0 ok, 1 failed, 2 wrong use.")
        sys.exit(0 if words else 2)
    if words[0] == "--version":
        from lattice import __version__

        print(f"lattice {__version__}")
        return
    for name in (_RUNNER, _TRAINER):
        if words[0] in _subcommands(name):
            _run(name, words)
    print(f"lattice: unknown subcommand '{words[0]}' (lattice --help lists them)", file=sys.stderr)
    sys.exit(2)


def _program(name: str) -> Path:
    """It stands in bin/ beside the lib/ with the libraries."""
    return find("liblattice.so", "LATTICE_RUNTIME_LIBRARY").parent.parent / "bin" / name


def _run(name: str, words: list[str]) -> NoReturn:
    environment = _with_torch() if name == _TRAINER else dict(os.environ)
    os.execve(_program(name), ["lattice", *words], environment)


def _subcommands(name: str) -> dict[str, str]:
    """The subcommands of a program and what they do, by its own help."""
    environment = _with_torch() if name == _TRAINER else dict(os.environ)
    done = subprocess.run([_program(name), "--help"], capture_output=True, text=True, env=environment)
    listed = done.stdout.partition("ubcommands:")[2]
    return dict(re.findall(r"^  ([a-z]\w*) +(\S.*)$", listed, re.M))


def _all_subcommands() -> dict[str, str]:
    trainer = _subcommands(_TRAINER) if importlib.util.find_spec("torch") else {}
    return {**trainer, **_subcommands(_RUNNER)}


def _with_torch() -> dict[str, str]:
    """The environment in which the program finds the libraries of the installed torch, which is not imported for that."""
    note = find("liblattice.so", "LATTICE_RUNTIME_LIBRARY").with_name("liblattice_ops.torch")
    built = note.read_text().strip()
    spec = importlib.util.find_spec("torch")
    found = importlib.metadata.version("torch") if spec else None
    if spec is None or not spec.submodule_search_locations or found is None or found.partition("+")[0] != built:
        sys.exit(f"lattice: this subcommand needs torch {built}, but "
                 f"{f'torch {found}' if found else 'no torch'} is installed; pip install torch=={built}")
    libraries = [os.path.join(spec.submodule_search_locations[0], "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, libraries))}


if __name__ == "__main__":
    main()
