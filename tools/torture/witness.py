"""The correct client: asks well-formed questions all along and compares every answer with a quiet server's.

A process of its own, so that the attack's threads do not disturb its clock. It runs until its standard input closes,
then prints its figures as JSON.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torture import wire  # noqa: E402  (needs the path)

TOKENS = 16
PAUSE_SECONDS = 0.02


def question(prompt, stream=False, **more):
    return dict(prompt=prompt, max_tokens=TOKENS, temperature=0, stream=stream, **more)


class Witness:
    def __init__(self, port, key, expected):
        self.port, self.key, self.expected = port, key, expected
        self.lock = threading.Lock()
        self.served, self.refused, self.longest, self.last = 0, 0, 0.0, time.monotonic()
        self.first = threading.Event()  # set by the first right answer
        self.failed, self.wrong, self.gaps, self.refusals = [], [], [], []

    def figures(self):
        with self.lock:
            longest = max(self.longest, time.monotonic() - self.last)
            return dict(served=self.served, refused=self.refused, longest_wait=longest, failed=self.failed[:5],
                        wrong=self.wrong[:5], gaps=sorted(self.gaps), refusals=sorted(self.refusals))

    def ask(self, prompt, stream):
        began = time.monotonic()
        try:
            with wire.connect(self.port, wire.SERVER, timeout=60) as link:
                link.sendall(wire.request("POST", "/v1/completions", question(prompt, stream), key=self.key))
                status, text, whole, gaps = self.read(link, stream)
        except OSError as error:
            status, text, whole, gaps = 0, str(error), False, []
        now = time.monotonic()
        with self.lock:
            if status in (0, 429, 503):  # status 0: closed before an answer began, as a server without room does
                self.refused += 1
                self.refusals.append(now - began)
            elif status != 200 or not whole:
                self.failed.append(f"status {status}, {'whole' if whole else 'cut'}: {text[:200]}")
            elif text != self.expected[prompt]:
                self.wrong.append(f"{prompt!r} got {text!r}, expected {self.expected[prompt]!r}")
            else:
                self.served += 1
                self.longest, self.last = max(self.longest, now - self.last), now
                self.gaps += gaps
                self.first.set()

    def read(self, link, stream):
        """(status, text, whether it came to its end, seconds between the pieces of a stream)."""
        if not stream:
            answer = wire.read_answer(link, 60)
            body = answer.json() if answer.complete else None
            if answer.status != 200 or body is None:
                return answer.status, answer.body.decode(errors="replace"), answer.complete, []
            return 200, body["choices"][0]["text"], True, []
        content, times = b"", []
        while b"data: [DONE]" not in content:
            piece = link.recv(1 << 16)
            if not piece:
                break
            if b"data: " in piece:  # what comes before the first is the time in the queue
                times.append(time.monotonic())
            content += piece
            if not content.startswith(b"HTTP/1.1 200") and len(content) > 12:
                break
        answer, _ = wire.parse(content)
        if answer is None or answer.status != 200:
            return (answer.status if answer else 0), content[:200].decode(errors="replace"), True, []
        events = [line[6:] for line in answer.body.decode().split("\n\n") if line.startswith("data: {")]
        text = "".join(choice["text"] for event in events for choice in json.loads(event).get("choices", []))
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        return 200, text, b"data: [DONE]" in content, gaps

    def run(self):
        prompts = list(self.expected)
        for number in range(1 << 30):
            self.ask(prompts[number % len(prompts)], stream=number % 3 != 0)
            time.sleep(PAUSE_SECONDS)


class WitnessProcess:
    """The correct client as the attacking program sees it."""

    def __init__(self, port, key, expected):
        self.process = subprocess.Popen([sys.executable, __file__, str(port), key or ""], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(expected) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()  # it has got its first answer

    def finish(self):
        return json.loads(self.process.communicate(timeout=60)[0])


def main():
    witness = Witness(int(sys.argv[1]), sys.argv[2], json.loads(sys.stdin.readline()))
    threading.Thread(target=witness.run, daemon=True).start()
    witness.first.wait(60)
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(witness.figures()), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
