"""Clients that use sessions through disturbances, and the check that every session is what it should be."""

import json
import random
import threading
import time
import urllib.error
import urllib.request

# Answers that mean: not now. Everything else that is not a success is a broken promise.
RETRY = {409, 429, 502, 503, 504}


class Broken(Exception):
    """A promise that was not kept."""


def ask(port, method, path, body=None, headers=(), seconds=30):
    """(status, bytes) of one request; status 0 when the connection failed."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data,
                                     {"Content-Type": "application/json", **dict(headers)}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (OSError, ValueError, EOFError) as error:
        return 0, str(error).encode()
    except Exception as error:  # http.client has errors of its own for answers that are cut off
        if type(error).__module__ == "http.client":
            return 0, str(error).encode()
        raise


class Session:
    """One session, everything that was asked of it, and what was answered."""

    def __init__(self, number, seed):
        self.number, self.random = number, random.Random(f"{seed}/{number}")
        self.prompt = f"session {number} "
        self.id, self.requests, self.position, self.lost = None, [], 0, False

    def next_request(self):
        """Path, body and idempotency key of the next request."""
        key = f"{self.number}-{len(self.requests)}-{self.random.getrandbits(64):x}"
        if self.random.random() < 0.5:
            text = "".join(self.random.choice("abcdefgh ") for _ in range(self.random.randint(1, 40)))
            return "append", {"text": text}, key
        return "complete", {"max_tokens": self.random.randint(1, 12), "temperature": 0}, key


class Fleet:
    """Sessions in use by several threads, each request repeated with its key until it is answered."""

    def __init__(self, ports, count, seed):
        self.ports, self.sessions = ports, [Session(i, seed) for i in range(count)]
        self.stop, self.problems, self.retries, self.answered = threading.Event(), [], 0, 0
        self.may_lose = False  # the store has lost its data: 404 is a clear answer then
        self.lock, self.random = threading.Lock(), random.Random(seed)

    def until_answered(self, method, path, body, headers, session, patience=120):
        deadline = time.monotonic() + patience
        while True:
            port = self.random.choice(self.ports)
            status, answer = ask(port, method, path, body, headers)
            if status in (200, 201):
                return json.loads(answer)
            if status == 404 and self.may_lose:
                session.lost = True
                return None
            if status not in RETRY and status != 0:
                raise Broken(f"session {session.number}: {method} {path} got {status}: {answer[:300]!r}")
            with self.lock:
                self.retries += 1
            if time.monotonic() > deadline:
                raise Broken(f"session {session.number}: {method} {path} was not answered in {patience} s: {answer[:300]!r}")
            time.sleep(self.random.uniform(0.02, 0.2))

    def begin(self, session):
        made = self.until_answered("POST", "/v1/sessions", {"prompt": session.prompt}, (), session)
        session.id, session.position = made["id"], made["position"]

    def step(self, session):
        kind, body, key = session.next_request()
        path = f"/v1/sessions/{session.id}/append"
        sent = body
        if kind == "complete":
            path, sent = "/v1/completions", {**body, "session": session.id}
        answer = self.until_answered("POST", path, sent, {"Idempotency-Key": key}, session)
        if answer is None:
            return
        position = answer["position"] if kind == "append" else answer["session"]["position"]
        expected = session.position + (len(body["text"]) if kind == "append" else body["max_tokens"])
        if position != expected:
            raise Broken(f"session {session.number} is at {position}; expected {expected} after {kind} {body}")
        session.position = position
        session.requests.append((kind, body, answer["choices"][0]["text"] if kind == "complete" else None))
        with self.lock:
            self.answered += 1

    def _work(self, mine):
        while not self.stop.is_set():
            for session in mine:
                if self.stop.is_set() or session.lost:
                    continue
                try:
                    self.step(session)
                except Broken as problem:
                    self.problems.append(str(problem))
                    return
            if all(session.lost for session in mine):
                return

    def run(self, disturb, threads=8):
        """Uses the sessions while disturb() runs."""
        self.stop.clear()
        workers = [threading.Thread(target=self._work, args=(self.sessions[i::threads],)) for i in range(threads)]
        for worker in workers:
            worker.start()
        try:
            disturb()
        finally:
            self.stop.set()
            for worker in workers:
                worker.join()

    def compare(self, reference_port, ports):
        """Replays every session at a server that nobody has disturbed; the states must be the same bytes."""
        for session in self.sessions:
            if session.lost:
                continue
            status, answer = ask(reference_port, "POST", "/v1/sessions", {"prompt": session.prompt})
            other = json.loads(answer)["id"]
            for kind, body, text in session.requests:
                if kind == "append":
                    status, answer = ask(reference_port, "POST", f"/v1/sessions/{other}/append", body)
                else:
                    status, answer = ask(reference_port, "POST", "/v1/completions", {**body, "session": other})
                    if json.loads(answer)["choices"][0]["text"] != text:
                        self.problems.append(f"session {session.number} wrote {text!r}; undisturbed {answer[:200]!r}")
                        break
                if status != 200:
                    self.problems.append(f"the reference answered {status}: {answer[:200]!r}")
            expected = ask(reference_port, "GET", f"/v1/sessions/{other}/state")[1]
            got = (0, b"")
            for _ in range(200):
                got = ask(self.random.choice(ports), "GET", f"/v1/sessions/{session.id}/state")
                if got[0] not in RETRY and got[0] != 0:
                    break
                time.sleep(0.1)
            if got != (200, expected):
                self.problems.append(f"session {session.number}: its state differs from an undisturbed one ({got[0]})")
            ask(reference_port, "DELETE", f"/v1/sessions/{other}")
