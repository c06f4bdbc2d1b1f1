"""Short hostile acts, each within a second or two, for a mixed load: move(port, random)."""

import time

from torture import wire
from torture.attacks.bodies import SHAPES
from torture.attacks.disconnects import STAGES
from torture.attacks.framing import AMBIGUOUS
from torture.forged import forge, mutated


def _source(draw):
    return f"127.0.0.{draw.randrange(2, 250)}"


def hang_up(port, draw):
    link = wire.connect(port, _source(draw))
    draw.choice(list(STAGES.values()))(link)
    wire.reset(link) if draw.random() < 0.5 else link.close()


def smuggle(port, draw):
    wire.exchange(port, draw.choice(list(AMBIGUOUS.values())), 2, _source(draw))


def heavy_json(port, draw):
    body = draw.choice(list(SHAPES.values()))(1 << draw.randrange(10, 18))
    wire.exchange(port, wire.request("POST", "/v1/completions", body), 10, _source(draw))


def unread_stream(port, draw):
    with wire.connect(port, _source(draw), receive_buffer=4096) as link:
        body = dict(prompt=f"unread {draw.random()}", n=draw.choice([1, 1, 16]), max_tokens=2000, temperature=0,
                    stream=True)
        wire.send(link, wire.request("POST", "/v1/completions", body))
        time.sleep(draw.random() * 2)


def slow_request(port, draw):
    with wire.connect(port, _source(draw)) as link:
        content = wire.request("POST", "/tokenize", dict(text="slow"))
        for byte in content[:draw.randrange(10, 60)]:
            if not wire.send(link, bytes([byte])):
                return
            time.sleep(0.02)


def large_body(port, draw):
    text = "y" * draw.randrange(1 << 10, 1 << 20)
    wire.exchange(port, wire.request("POST", "/tokenize", dict(text=text)), 10, _source(draw))


def pipeline(port, draw):
    with wire.connect(port, _source(draw)) as link:
        wire.send(link, wire.head("GET", "/health") * draw.randrange(2, 40))
        wire.read_bytes(link, draw.random())


def sessions(port, draw):
    """Forks, forged and damaged states, and everything deleted in the end."""
    def call(method, path, body=None):
        return wire.exchange(port, wire.request(method, path, body), 10, _source(draw))

    made = call("POST", "/v1/sessions", dict(prompt=f"session {draw.randrange(50)}"))
    if made.status != 201:
        return
    ids = [made.json()["id"]]
    for _ in range(draw.randrange(6)):
        fork = call("POST", f"/v1/sessions/{draw.choice(ids)}/fork")
        if fork.status == 201:
            ids.append(fork.json()["id"])
    path = f"/v1/sessions/{ids[-1]}"
    state = call("GET", path + "/state")
    if state.status == 200:
        call("PUT", path + "/state", mutated(state.body, draw))
        call("PUT", path + "/state", forge(state.body, lambda i: draw.uniform(-3, 3)))
        call("POST", path + "/append", dict(text=f"victim {draw.randrange(50)}", trace=True))
        call("POST", path + "/rewind", dict(position=draw.randrange(20)))
    for session in ids:
        call("DELETE", f"/v1/sessions/{session}")


MOVES = [hang_up, hang_up, smuggle, heavy_json, unread_stream, slow_request, large_body, pipeline, sessions]
