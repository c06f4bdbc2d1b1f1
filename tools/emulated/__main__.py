"""`./lattice test --arm64`, its last part: lattice-run on CPUs that this machine does not have, by qemu-user, on the same files.

    .venv/bin/python tools/emulated [--only NAME]

Every CPU of CPUS reads checkpoints that this machine wrote and must find the instruction sets it has, write the same bytes
when it converts a checkpoint, write the same texts in float32, and have nearly the same losses as this machine: float32 sums
are added in another order where vectors are shorter. In int8 and bf16 a difference in the last place can round an activation
to its neighbour, so losses may differ by as much as that format costs, and texts are not compared. Integer products
themselves have the same bits everywhere: kernels_dense_test compares them with a plain loop.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from torture.models import write_model  # noqa: E402

PROGRAM = ROOT / "build/release/bin/lattice-run"
ARM_PROGRAM = ROOT / "build/arm64/bin/lattice-run"
ARM_ROOT = ROOT / "build/arm64-root"
FORMATS = ["float32", "bf16", "int8"]
KINDS = ["memory", "transformer"]
FLOAT_BOUND = 1e-4  # of losses of about 6


@dataclass(frozen=True)
class Cpu:
    name: str
    command: list
    isas: str  # as lattice-run --version lists them


def arm(cpu, isas):
    return Cpu(f"arm64 {cpu}", ["qemu-aarch64", "-L", str(ARM_ROOT), "-cpu", cpu, str(ARM_PROGRAM)], isas)


def x86(cpu, isas):
    return Cpu(f"x86-64 {cpu}", ["qemu-x86_64", "-cpu", cpu, str(PROGRAM)], isas)


CPUS = [x86("Nehalem", "scalar"), x86("Westmere", "scalar sse4"), arm("cortex-a72", "neon"), arm("neoverse-n1", "neon neon-dot"),
        arm("max", "neon neon-dot neon-bf16")]


def run(command, *arguments):
    environment = {name: value for name, value in os.environ.items() if name not in ("LATTICE_ISA", "GLIBC_TUNABLES")}
    result = subprocess.run([*command, *map(str, arguments)], capture_output=True, env=environment, cwd=ROOT)
    if result.returncode:
        said = result.stderr.decode(errors="replace").strip()[-500:]
        raise RuntimeError(f"'{' '.join([*command, *map(str, arguments)])}' ended with {result.returncode}: {said}")
    return result.stdout


def convert(command, model, out):
    """Writes the model in smaller formats into `out`; returns the bytes of the weight files."""
    for form in FORMATS[1:]:
        run(command, "convert", "--model", model, "--to", form, "--out", out / form)
    return {form: (out / form / "model.safetensors").read_bytes() for form in FORMATS[1:]}


def texts(command, model):
    """Greedy bytes, and bytes drawn with a seed."""
    ask = ["generate", "--model", model, "--prompt", "A memory of", "--tokens", 24, "--threads", 1]
    return [run(command, *ask, "--temperature", 0), run(command, *ask, "--temperature", 0.5, "--seed", 7)]


def losses(command, model, text):
    """The loss at every position of a window of 64 tokens."""
    said = run(command, "eval", "ppl", "--model", model, "--data", text, "--context", 64, "--max-tokens", 256, "--threads", 1,
               "--json")
    return [point["loss"] for point in json.loads(said)["results"][0]["curve"]]


class Native:
    """What this machine makes of the models, to compare with."""

    def __init__(self, folder):
        self.folder, self.text = folder, folder / "text.txt"
        self.text.write_text("A memory of a fixed number of slots, each updated with what it does not hold yet.\n" * 8)
        self.models, self.weights, self.texts, self.losses = {}, {}, {}, {}
        for kind in KINDS:
            self.models[kind, "float32"] = write_model(kind, folder / kind / "float32")
            self.texts[kind] = texts([str(PROGRAM)], self.models[kind, "float32"])
            for form, content in convert([str(PROGRAM)], self.models[kind, "float32"], folder / kind).items():
                self.models[kind, form], self.weights[kind, form] = folder / kind / form, content
        for name, model in self.models.items():
            self.losses[name] = losses([str(PROGRAM)], model, self.text)


    def bound(self, kind, form):
        """What a loss may differ by: what the format costs."""
        return FLOAT_BOUND if form == "float32" else apart(self.losses[kind, form], self.losses[kind, "float32"])


def apart(some, others):
    return max(abs(a - b) for a, b in zip(some, others, strict=True))


def problems_of(cpu, native):
    """Sentences about what differs on a CPU, and the largest difference of a loss by model and format."""
    found, largest = [], {}
    version = run(cpu.command, "--version").decode()
    if not version.endswith(f": {cpu.isas}\n"):
        found.append(f"has '{cpu.isas}', but says '{version.strip()}'")
    for kind in KINDS:
        out = native.folder / cpu.name.replace(" ", "-") / kind
        for form, content in convert(cpu.command, native.models[kind, "float32"], out).items():
            if content != native.weights[kind, form]:
                found.append(f"converts the {kind} to {form} with other bytes")
    for (kind, form), model in native.models.items():
        if form == "float32" and texts(cpu.command, model) != native.texts[kind]:
            found.append(f"writes another text with the {kind}")
        away = apart(losses(cpu.command, model, native.text), native.losses[kind, form])
        largest[f"{kind} {form}"] = away
        if not away <= native.bound(kind, form):
            found.append(f"has a loss of the {kind} in {form} that is {away:.2g} away; {native.bound(kind, form):.2g} is allowed")
    return found, largest


def main():
    parser = argparse.ArgumentParser(prog="tools/emulated", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[cpu.name for cpu in CPUS], help="one CPU")
    only = parser.parse_args().only
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        native = Native(Path(folder))
        print(f"emulated: this machine is {run([str(PROGRAM)], '--version').decode().strip()}")
        for cpu in CPUS:
            if only not in (None, cpu.name):
                continue
            found, largest = problems_of(cpu, native)
            away = ", ".join(f"{name} {value:.2g}" for name, value in largest.items())
            print(f"emulated: {cpu.name} ({cpu.isas}): {'; '.join(found) or 'agrees'}; losses away by at most {away}", flush=True)
            failed = failed or bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
