"""Whether two routes agree, and whether prompts are those that are stored."""

import hashlib
import json
import math
from pathlib import Path

from harness.routes import Outcome

TOLERANCE = 1e-5  # of log-likelihoods, relative
PINS = Path(__file__).resolve().parents[2] / "tests" / "data" / "harness" / "prompts.json"
BLOCK = 100  # items under one hash, so that the beginning of a set can be checked, and a difference found


def differences(ours: Outcome, theirs: Outcome) -> tuple[list[str], float]:
    """What disagrees, a line each, and the largest relative difference of log-likelihoods."""
    found, worst = [], 0.0
    if len(ours.requests) != len(theirs.requests):
        return [f"{len(ours.requests)} requests and {len(theirs.requests)}"], math.inf
    for at, (request, other) in enumerate(zip(ours.requests, theirs.requests)):
        (score, greedy), (their_score, their_greedy) = ours.scores[at], theirs.scores[at]
        off = abs(score - their_score) / max(1.0, abs(score))
        worst = max(worst, off)
        if request != other:
            found.append(f"request {at}: {request!r} and {other!r}")
        if greedy != their_greedy:
            found.append(f"request {at}: greedy {greedy} and {their_greedy}, log-likelihoods {score} and {their_score}")
        if not off <= TOLERANCE:
            found.append(f"request {at}: log-likelihoods {score} and {their_score}")
    return found + _figures(ours.figures, theirs.figures), worst


def _figures(ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    """Accuracies and their errors are counts, and equal. Perplexities are sums; the harness draws their error at random."""
    found = []
    for name in sorted(theirs.keys() & ours.keys() - {"perplexity_stderr"}):
        exact = name.startswith("acc")
        if not math.isclose(ours[name], theirs[name], rel_tol=1e-12 if exact else TOLERANCE):
            found.append(f"{name}: {ours[name]} and {theirs[name]}")
    return found if {"acc", "acc_stderr"} <= theirs.keys() & ours.keys() else [*found, "no accuracies to compare"]


def digest(parts) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def pins_of(outcome: Outcome) -> dict:
    """The harness's hashes of a whole set by blocks of items, and one of all strings that it asks a model about."""
    blocks = [digest(outcome.hashes[i:i + BLOCK]) for i in range(0, len(outcome.hashes), BLOCK)]
    return {"items": len(outcome.hashes), "requests": len(outcome.requests), "strings": strings_of(outcome), "blocks": blocks}


def strings_of(outcome: Outcome) -> str:
    return digest(text for request in outcome.requests for text in request)


def stored() -> dict:
    return json.loads(PINS.read_text())
