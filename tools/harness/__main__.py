"""./lattice test --harness: three routes to the same evaluation agree, request by request.

`./lattice eval tasks`, lm-evaluation-harness over our server, and the harness over lattice.hf (`--model hf`, by
`python -m lattice.lm_eval`) get the same strings and give the same greedy flags, accuracies and standard errors, and
log-likelihoods to 1e-5. The harness uses its own task files with the datasets replaced by the items of --tasks-dir.
Exit code: 0 when all agree, 1 when something differs, 2 for wrong use.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import agree, routes, sets  # noqa: E402  (needs the path)

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "tests" / "data" / "tasks"
SETTINGS = ["model.layers=2", "model.width=64", "train.seq_len=128", "train.batch_tokens=1024", "train.warmup=5", "train.steps=100",
            "train.save_every=0", "train.eval_every=0", "train.precision=fp32"]


def arguments():
    parser = argparse.ArgumentParser(prog="./lattice test --harness", description=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks-dir", type=Path, default=Path(os.environ.get("LATTICE_TASKS_DIR", SHIPPED)),
                        help="items as for ./lattice eval tasks (default: LATTICE_TASKS_DIR, or the few that ship)")
    parser.add_argument("--tasks", default=",".join(sets.TASKS), help="names, separated by commas (default: all)")
    parser.add_argument("--limit", type=int, default=200, help="items of a task (default 200)")
    parser.add_argument("--model", type=Path, help="a checkpoint; without one a small one is trained, with a tokenizer of pieces")
    parser.add_argument("--python", type=Path, default=Path(os.environ.get("LATTICE_CLIENTS_PYTHON", sys.executable)),
                        help="an interpreter with lm_eval, transformers and torch (default: LATTICE_CLIENTS_PYTHON, or this one)")
    parser.add_argument("--pins", choices=["check", "write"], help="compare all prompts of the whole sets, in the harness and in "
                        "C++, with the stored hashes, or store those of the harness; nothing else")
    parser.add_argument("--json", type=Path, help="write what was found")
    options = parser.parse_args()
    wrong = [name for name in options.tasks.split(",") if name not in sets.TASKS]
    if wrong:
        parser.error(f"unknown task {wrong[0]!r}; there are {', '.join(sets.TASKS)}")
    return options


def trained_model(folder):
    """Pieces, not bytes: where a context ends inside one, the routes could split it differently."""
    text = folder / "text.txt"
    files = sorted((ROOT / "data" / "austen" / "train").iterdir())
    text.write_bytes(files[0].read_bytes()[:400_000])
    program = routes.BIN / "lattice"
    routes.run([program, "tokenizer", "train", "--data", text, "--vocab", "1000", "--out", folder / "pieces.model"])
    settings = [word for setting in [*SETTINGS, f"data.tokenizer={folder / 'pieces.model'}"] for word in ("--set", setting)]
    routes.run([program, "train", "--data", text, "--out", folder / "run", *settings])
    return folder / "run" / "checkpoints" / "latest"


def harness_files(python):
    code = "import lm_eval, pathlib; print(lm_eval.__version__); print(pathlib.Path(lm_eval.__file__).parent / 'tasks')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"harness: {python} has no lm_eval: pip install -r requirements-clients.txt -r requirements-hf.txt there")
    version, folder = done.stdout.splitlines()
    return version, Path(folder)


def compare(options, names, folder, tasks):
    model = (options.model or trained_model(folder)).resolve()
    ours = routes.by_cpp(model, options.tasks_dir, names, options.limit, folder)
    theirs = {"hf": routes.by_harness(options.python, routes.transformers_model(model), tasks, names, options.limit, folder / "hf")}
    with routes.served(model) as url:
        theirs["server"] = routes.by_harness(options.python, routes.served_model(url), tasks, names, options.limit, folder / "server")
    found = {}
    for name in names:
        row = {"requests": len(ours[name].requests), "acc": ours[name].figures["acc"]}
        for route, outcomes in theirs.items():
            differ, worst = agree.differences(ours[name], outcomes[name])
            row[route] = {"differences": len(differ), "log_likelihood_off": worst}
            print(f"{name}, {route}: {row['requests']} requests, {len(differ)} differences, log-likelihoods differ by at most {worst:.1e}")
            print("".join(f"  {line[:300]}\n" for line in differ[:5]), end="")
        found[name] = row
    return found, any(row[route]["differences"] for row in found.values() for route in theirs)


def check_pins(options, names, folder, tasks, version):
    """Prompts need no trained model."""
    pins = {"lm_eval": version, "block": agree.BLOCK, "tasks": {}}
    for name in names:
        pins["tasks"][name] = agree.pins_of(routes.prompts(options.python, tasks, name, folder))
        print(f"{name}: {pins['tasks'][name]['items']} items, {pins['tasks'][name]['requests']} requests in the harness", flush=True)
    if options.pins == "write":
        kept = agree.stored()["tasks"] if agree.PINS.exists() else {}
        agree.PINS.parent.mkdir(exist_ok=True)
        agree.PINS.write_text(json.dumps(pins | {"tasks": kept | pins["tasks"]}, indent=1) + "\n")
        return pins, False
    expected, failed = agree.stored()["tasks"], False
    ours = routes.by_cpp((options.model or trained_model(folder)).resolve(), options.tasks_dir, names, None, folder)
    for name in names:
        harness_same = pins["tasks"][name] == expected.get(name)
        cpp_same = agree.strings_of(ours[name]) == expected.get(name, {}).get("strings")
        print(f"{name}: the harness's prompts and targets are {'the stored' if harness_same else 'OTHER'} ones, the strings of "
              f"./lattice eval tasks {'too' if cpp_same else 'are OTHERS'}")
        failed |= not (harness_same and cpp_same)
    return pins, failed


def main():
    options = arguments()
    names = options.tasks.split(",")
    version, files = harness_files(options.python)
    folder = Path(tempfile.mkdtemp(prefix="lattice-harness-"))
    try:
        tasks = folder / "tasks"
        sets.write(tasks, options.tasks_dir, files, names)
        if options.pins:
            found, failed = check_pins(options, names, folder, tasks, version)
        else:
            found, failed = compare(options, names, folder, tasks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps({"lm_eval": version, "limit": options.limit, "found": found}, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
