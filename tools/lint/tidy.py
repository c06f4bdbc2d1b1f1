"""Runs clang-tidy (the checks of .clang-tidy) over the sources of src/, or over the files named, on all cores.

    python tools/lint/tidy.py BUILD_DIRECTORY [FILE...]     BUILD_DIRECTORY has the compile_commands.json

A unity build's commands serve too: the headers of torch are then read once for some four sources instead of once for
each, and a source is judged where the unity file includes it.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sources(build):
    commands = json.loads((build / "compile_commands.json").read_text())
    files = {Path(command["file"]) for command in commands}
    return sorted(file for file in files if file.is_relative_to(ROOT / "src") or file.is_relative_to(build / "src"))


def tidy(build, file):
    # What clang does not know of g++'s command lines is not a finding, nor that a unity file includes sources.
    command = ["clang-tidy-14", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option"]
    command += ["--checks=-bugprone-suspicious-include", file]
    done = subprocess.run(command, text=True, capture_output=True)
    return done.returncode, done.stdout.strip()


def main(build, *names):
    build = Path(build).resolve()
    files = [Path(name).resolve() for name in names] or sources(build)
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda file: tidy(build, file), files)
        for number, (file, (status, text)) in enumerate(zip(files, results), 1):
            failed += status != 0
            if status != 0:
                print(text)
            print(f"[{number}/{len(files)}] {file.relative_to(ROOT)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
