"""Clients that go away at every stage of a request."""

import socket
from functools import partial

from torture import wire
from torture.registry import attack, check, together

ASK = wire.request("POST", "/v1/completions", dict(prompt="gone", max_tokens=2000, temperature=0))
STREAM = wire.request("POST", "/v1/completions", dict(prompt="gone", max_tokens=2000, temperature=0, stream=True))
SESSION = wire.request("POST", "/v1/sessions", dict(prompt="gone " * 200))
SEVERAL = wire.request("POST", "/v1/completions", dict(prompt=["gone"] * 8, n=4, max_tokens=500, temperature=0))


def after_first_bytes(link):
    wire.send(link, STREAM)
    wire.read_bytes(link, 5, most=1)


def in_the_middle(link):
    wire.send(link, STREAM)
    wire.read_bytes(link, 5, most=4000)


STAGES = {
    "before a byte": lambda link: None,
    "in the request line": lambda link: wire.send(link, ASK[:9]),
    "in the head": lambda link: wire.send(link, ASK[:40]),
    "behind the head": lambda link: wire.send(link, ASK[:ASK.find(b"\r\n\r\n") + 4]),
    "in the body": lambda link: wire.send(link, ASK[:-5]),
    "behind the body": lambda link: wire.send(link, ASK),
    "behind the body of a stream": lambda link: wire.send(link, STREAM),
    "behind several texts": lambda link: wire.send(link, SEVERAL),
    "at the first byte of the answer": after_first_bytes,
    "in the middle of a stream": in_the_middle,
    "behind two requests": lambda link: wire.send(link, STREAM + ASK),
}


TOGETHER = 12
# The correct client may have a text running, and it and the reader of the figures a connection each.
REMAINING = {"lattice_running_sequences": 1, "lattice_waiting_sequences": 0, "lattice_connections": 3}


def hang_up(scene, stage, how):
    link = wire.connect(scene.server.port, source=f"127.0.0.{scene.random.randrange(2, 250)}")
    STAGES[stage](link)
    if how == "reset":
        return wire.reset(link)
    if how == "half":
        link.shutdown(socket.SHUT_WR)
    link.close()


@attack("disconnects", "clients that hang up at any stage leave nothing behind: no running text, no session, no "
        "connection", memory_mib=96, args=("--batch", 32, "--queue", 64))
def disconnects(scene):
    before = scene.metrics()
    count = scene.choose(132, 1100)
    plan = [(list(STAGES)[i % len(STAGES)], scene.random.choice(["reset", "half", "close"])) for i in range(count)]
    for at in range(0, count, TOGETHER):
        together([partial(hang_up, scene, stage, how) for stage, how in plan[at:at + TOGETHER]], scene.scaled(30))
    gone = scene.server.wait_for(lambda m: all(m[name] <= most for name, most in REMAINING.items()), 5)
    after = scene.metrics()
    check(gone, f"after {count} hang-ups there remain { {name: after[name] for name in REMAINING} }")
    check(after["lattice_sessions"] == before["lattice_sessions"], "sessions were left")


@attack("abandoned-sessions", "a session whose client hung up while it read or wrote is free again, and consistent")
def abandoned_sessions(scene):
    for i in range(scene.choose(10, 100)):
        session = scene.new_session("start")
        body = dict(session=session, prompt="x" * 50, max_tokens=3000, temperature=0, stream=i % 2 == 0)
        link = wire.connect(scene.server.port)
        wire.send(link, wire.request("POST", "/v1/completions", body))
        wire.read_bytes(link, 0.2, most=1 + scene.random.randrange(4000))
        wire.reset(link) if i % 3 else link.close()
        path = f"/v1/sessions/{session}"
        free = scene.server.wait_for(lambda _: scene.call("GET", path).status != 409, 5)
        check(free, "a session is still in use 5 s after its client hung up")
        answer = scene.call("POST", path + "/rewind", dict(position=5))
        rewound = answer.status == 200 and answer.json()["position"] == 5
        check(rewound, f"rewinding got {answer.status}: {answer.body[:200]!r}")
        check(scene.call("DELETE", path).status == 200, "the session cannot be deleted")
