"""Clients in processes of their own: many that ask honestly, or many that misbehave, until standard input closes."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torture import wire  # noqa: E402  (needs the path)


def ask(port, draw):
    """A short or a long text, streamed or not; a refused client waits as it is told, shortened to keep up the load."""
    tokens = draw.choice([4, 8, 16, 200, 400])
    body = dict(prompt=f"question {draw.randrange(1000)} " * draw.choice([1, 1, 20]), max_tokens=tokens, temperature=0,
                stream=draw.random() < 0.3)
    answer = wire.exchange(port, wire.request("POST", "/v1/completions", body), 60)
    if answer.status in (429, 503):
        time.sleep(0.25)
    return answer.status


def misbehave(port, draw):
    from torture.moves import MOVES
    draw.choice(MOVES)(port, draw)
    return 0


class LoadProcess:
    """`threads` clients of a kind ("ask" or "misbehave") on one server."""

    def __init__(self, port, kind, threads, seed):
        self.process = subprocess.Popen([sys.executable, __file__, str(port), kind, str(threads), str(seed)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def finish(self):
        """{status or error: how often}"""
        return json.loads(self.process.communicate(timeout=60)[0])


def main():
    os.nice(10)  # the clock of the correct client matters, not how fast the load is made
    port, kind, threads, seed = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    act, counts, lock = dict(ask=ask, misbehave=misbehave)[kind], {}, threading.Lock()

    def loop(i):
        draw = random.Random(seed * 1000 + i)
        while True:
            try:
                outcome = str(act(port, draw))
            except OSError as error:
                outcome = type(error).__name__
                time.sleep(0.1)
            with lock:
                counts[outcome] = counts.get(outcome, 0) + 1

    for i in range(threads):
        threading.Thread(target=loop, args=(i,), daemon=True).start()
    sys.stdin.read()
    with lock:
        print(json.dumps(counts), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
