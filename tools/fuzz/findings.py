"""What fuzzing found: artifacts of libFuzzer, checked again alone before they count."""

import re
from dataclasses import dataclass

from fuzz.target import SLOW_SECONDS


@dataclass(frozen=True)
class Finding:
    target: str
    kind: str  # crash, leak, slow, allocation
    summary: str
    command: str


def examine(target, path):
    """The finding of an artifact. None, and the artifact is gone, where an input was only slow because the machine was
    busy: time is measured again as computing of the process, without what it takes for an empty input."""
    ended_well, seconds, log = target.replay(path)
    command = " ".join(target.command(path))
    if not ended_well:
        return Finding(target.name, kind_of(log), summary_of(log), command)
    if path.name.startswith(("slow-unit-", "timeout-")):
        empty = path.with_name("empty")
        empty.write_bytes(b"")
        # The least of three: what else runs on the machine only adds.
        idle = min(target.replay(empty)[1] for _ in range(3))
        empty.unlink()
        seconds = min(seconds, *(target.replay(path)[1] for _ in range(2))) - idle
        if seconds > SLOW_SECONDS:
            return Finding(target.name, "slow", f"{seconds:.1f} s of computing", command)
        path.unlink()
        return None
    return Finding(target.name, "crash", "not repeated by this input alone", command)


def kind_of(log):
    if "malloc limit exceeded" in log or "out-of-memory" in log or "[allocation]" in log:
        return "allocation"
    return "leak" if "LeakSanitizer" in log else "slow" if "libFuzzer: timeout" in log else "crash"


def summary_of(log):
    for pattern in (r"\[allocation\] .*", r"SUMMARY: .*", r"runtime error: .*", r"ERROR: .*"):
        if found := re.search(pattern, log):
            return found[0]
    return "no report"
