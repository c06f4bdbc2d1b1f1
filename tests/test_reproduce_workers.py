"""`lattice reproduce --workers`: several processes share a directory; no run is made twice, and none is lost with its maker."""

import json
import random
import re
import subprocess
import time

from cli_program import PROGRAM

WORKERS, KILLS = 4, 2


def start(out):
    words = [PROGRAM, "reproduce", "slots", "--scale", "miniature", "--out", out, "--workers", "--lease", "2", "--jobs", "1"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def holders_of(out):
    found = set()
    for claim in out.glob("claims/*"):
        try:
            found |= {int(word) for word in claim.read_text().split()[1:2]}
        except FileNotFoundError:
            pass
    return found


def test_workers_share_runs_and_take_over_those_of_dead_ones(tmp_path):
    chance = random.Random(5)
    out = tmp_path / "out"
    workers = [start(out) for _ in range(WORKERS)]
    killed = []
    try:
        for _ in range(KILLS):
            # Kill one that holds a claim and works on it.
            end, victim = time.monotonic() + 120, None
            while victim is None and time.monotonic() < end:
                holders = holders_of(out)
                alive = [w for w in workers if w.pid in holders and w.poll() is None and w not in killed]
                victim = chance.choice(alive) if alive else None
                time.sleep(0.02)
            assert victim is not None, "no worker took a run"
            victim.kill()
            killed.append(victim)
        said = [worker.communicate(timeout=300)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    results = json.loads((out / "slots" / "results.json").read_text())
    assert results["runs"] == results["wanted"] > 0
    for worker, text in zip(workers, said):
        assert worker in killed or worker.returncode == 0, text
    done = [name for text in said for name in re.findall(r"\] ([0-9a-f]{12}) done", text)]
    files = {path.stem for path in (out / "runs").glob("*.json")}
    assert len(done) == len(set(done)), "no run was made twice"
    assert set(done) <= files and len(files) - len(done) <= KILLS, "only a killed worker may not have said that it was done"
    assert not list((out / "work").glob("[0-9a-f]*"))
