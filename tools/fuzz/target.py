"""A fuzz target: its program and limits as CMake wrote them down, one slice of fuzzing, and what libFuzzer says of it."""

import json
import re
import resource
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

# The longest input that is stored; libFuzzer's own limit of a target may be lower.
MOST_BYTES = 64 << 10
# An input that takes more computing than this is a finding.
SLOW_SECONDS = 1.0


@dataclass
class Slice:
    """What a call of the program did."""
    seconds: float = 0
    executions: int = 0
    edges_at_start: int = 0
    edges: int = 0
    features: int = 0
    crashed: bool = False
    artifacts: list = field(default_factory=list)
    log: str = ""


@dataclass(frozen=True)
class Target:
    name: str
    program: Path
    options: tuple
    folder: Path  # what belongs to this target in the build tree

    @property
    def found(self):
        """Inputs that reached something new, not minimised."""
        return self.made("found")

    @property
    def findings(self):
        return self.made("findings")

    def made(self, name):
        folder = self.folder / name / self.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def command(self, *arguments):
        return [str(self.program), *self.options, *map(str, arguments)]

    def fuzz(self, seconds, seeds, started=lambda process: None):
        """One slice. `started` gets the process, so that others can end it; libFuzzer then reports what it did."""
        with tempfile.TemporaryDirectory(prefix="lattice-fuzz-") as scratch:
            began = time.monotonic()
            process = subprocess.Popen(
                self.command(f"-max_total_time={max(1, round(seconds))}", "-print_final_stats=1", "-reload=0",
                             f"-report_slow_units={round(SLOW_SECONDS)}", f"-artifact_prefix={scratch}/",
                             self.found, seeds),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
            started(process)
            log = process.communicate()[1]
            done = read_log(log)
            done.seconds = time.monotonic() - began
            done.crashed = process.returncode not in (0, -signal.SIGINT, -signal.SIGTERM)
            done.artifacts = [self.keep(path) for path in sorted(Path(scratch).iterdir())]
            return done

    def keep(self, path):
        kept = self.findings / path.name
        kept.write_bytes(path.read_bytes())
        return kept

    def coverage(self, *folders):
        """(edges, features) of the inputs in the folders."""
        done = subprocess.run(self.command("-runs=0", "-reload=0", *folders), capture_output=True, text=True,
                              errors="replace")
        read = read_log(done.stderr)
        return read.edges, read.features

    def replay(self, path):
        """Runs one input: (whether the program ended well, seconds of computing, its last words)."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(self.command("-timeout=60", path), capture_output=True, text=True, errors="replace")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done.returncode == 0, seconds, done.stderr


def read_targets(build):
    folder = build / "fuzz"
    listed = json.loads((folder / "targets.json").read_text())
    return {entry["name"]: Target(entry["name"], build / "bin" / f"{entry['name']}_fuzz", tuple(entry["options"]), folder)
            for entry in listed if "name" in entry}


def read_log(log):
    """Executions and coverage from libFuzzer's messages. A run that crashed has no final statistics: its last message
    with a number of executions counts then."""
    read = Slice(log=log)
    for line in log.splitlines():
        if event := re.match(r"#(\d+)\s+(\w+)\s+cov: (\d+) ft: (\d+)", line):
            executions, name, edges, features = event.groups()
            read.executions, read.edges, read.features = int(executions), int(edges), int(features)
            if name == "INITED":
                read.edges_at_start = int(edges)
        elif final := re.match(r"stat::number_of_executed_units:\s*(\d+)", line):
            read.executions = int(final[1])
    return read
