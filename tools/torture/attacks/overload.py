"""More than the server can do, for long, and everything at once."""

import time

from torture import proc
from torture.load import LoadProcess
from torture.registry import attack, check
from torture.stage import PROMPTS
from torture.witness import WitnessProcess

PLACES = 32
ARGS = ("--batch", PLACES, "--queue", PLACES)
# What a machine that other programs use may add to a time, in seconds.
SLACK = 0.002
REFUSED_WITHIN = 0.020


def percentile(sorted_values, share):
    return sorted_values[min(int(share * len(sorted_values)), len(sorted_values) - 1)] if sorted_values else 0.0


def watched(scene, seconds, loads):
    """Figures of a correct client beside the loads [(kind, threads)], how often these got what, and the memory by time."""
    running = [(kind, LoadProcess(scene.server.port, kind, threads, scene.random.randrange(1 << 20)))
               for kind, threads in loads]
    time.sleep(0.5 if loads else 0.0)
    witness = WitnessProcess(scene.server.port, None, scene.expected(PROMPTS))
    began, resident = time.monotonic(), []
    while time.monotonic() - began < seconds and scene.server.alive():
        time.sleep(0.2)
        resident.append(proc.resident_bytes(scene.server.pid) if scene.server.alive() else 0)
    seen = witness.finish()
    counts = {}
    for kind, load in running:
        for outcome, count in load.finish().items():
            counts[f"{kind} {outcome}"] = counts.get(f"{kind} {outcome}", 0) + count
    return seen, counts, resident


def measure_unloaded(scene):
    """p99 between tokens of a correct client alone, and with as many others as there are places: none is refused."""
    seconds = scene.choose(1.5, 10)
    alone, _, _ = watched(scene, seconds, [])
    full, _, _ = watched(scene, seconds, [("ask", PLACES - 1)])
    scene.figures["between_p99_alone_ms"] = round(1e3 * percentile(alone["gaps"], 0.99), 2)
    return full


def judge(scene, unloaded, loaded):
    """Between tokens, refusals, right answers."""
    between = [percentile(seen["gaps"], 0.99) for seen in (unloaded, loaded)]
    refusal = percentile(loaded["refusals"], 0.99)
    scene.figures.update(between_p99_unloaded_ms=round(1e3 * between[0], 2),
                         between_p99_loaded_ms=round(1e3 * between[1], 2), refusal_p99_ms=round(1e3 * refusal, 2),
                         served=loaded["served"], refused=loaded["refused"])
    complaints = loaded["wrong"] + loaded["failed"]
    check(not complaints, f"a correct client got {complaints[:1]}")
    check(loaded["served"] > 0, "a correct client was never served")
    # In a short run on a machine that does other things, only gross delays tell anything.
    allowed = 0.5 if scene.quick else 2 * between[0] + SLACK
    check(between[1] <= scene.scaled(allowed),
          f"p99 between tokens {1e3 * between[1]:.1f} ms, unloaded {1e3 * between[0]:.1f} ms")
    allowed = 1.0 if scene.quick else REFUSED_WITHIN
    check(refusal <= scene.scaled(allowed), f"refusals take {1e3 * refusal:.1f} ms at p99 (bound {1e3 * allowed:g})")


@attack("overload", "with four times as many clients as places, short and long requests mixed, answers are right, p99 "
        "between tokens at most twice the unloaded one, refusals within 20 ms", args=ARGS, memory_mib=128, wait_seconds=0)
def overload(scene):
    unloaded = measure_unloaded(scene)
    loaded, counts, _ = watched(scene, scene.choose(3, 30), [("ask", 2 * PLACES), ("ask", 2 * PLACES)])
    scene.figures["clients"] = counts
    judge(scene, unloaded, loaded)


@attack("soak", "for --minutes of overload and hostile acts at once: no crash, memory flat within 2 %, correct clients "
        "served", args=(*ARGS, "--sessions", 500, "--session-mib", 128, "--cache-mib", 16), memory_mib=768, after_mib=256,
        wait_seconds=0, long_only=True)
def soak(scene):
    unloaded = measure_unloaded(scene)
    loads = [("ask", PLACES), ("ask", PLACES), ("misbehave", 40), ("misbehave", 40)]
    loaded, counts, resident = watched(scene, scene.seconds, loads)
    scene.figures.update(clients=counts, longest_wait=round(loaded["longest_wait"], 2))
    check(scene.server.alive(), "the server ended")
    # Caches and arenas fill up in the first third.
    third = len(resident) // 3
    before, later = max(resident[:third]), max(resident[third:])
    scene.figures.update(first_third_mib=round(before / proc.MIB, 1), later_mib=round(later / proc.MIB, 1))
    check(later <= 1.02 * before, f"memory grew from {before / proc.MIB:.0f} to {later / proc.MIB:.0f} MiB")
    judge(scene, unloaded, loaded)
