"""Sessions as a way to make the server grow."""

import threading

from torture import wire
from torture.proc import MIB
from torture.registry import attack, check, together

SESSION_MIB = 16
TOKENS = 1000  # of the transformer's state that is sent again and again: 8 KiB each, 8 MB in all


def session_mib(scene):
    return scene.metrics()["lattice_session_bytes"] / MIB


@attack("session-budget", f"--session-mib {SESSION_MIB} bounds the sessions however they grow: by states that are sent, "
        "by prompts, by forks", memory_mib=160, model="transformer", args=("--session-mib", SESSION_MIB))
def session_budget(scene):
    long = scene.new_session("a" * TOKENS)
    state = scene.call("GET", f"/v1/sessions/{long}/state").body
    room = SESSION_MIB + 2 * len(state) / MIB  # one state may be counted only when it is there
    scene.call("DELETE", f"/v1/sessions/{long}")
    refused, count = 0, scene.choose(20, 200)
    sessions = [scene.new_session() for _ in range(count)]
    for session in sessions:
        answer = scene.call("PUT", f"/v1/sessions/{session}/state", state)
        check(answer.status in (200, 429), f"a state got {answer.status}: {answer.body[:200]!r}")
        refused += answer.status == 429
        used = session_mib(scene)
        check(used <= room, f"sessions hold {used:.0f} MiB after {sessions.index(session) + 1} states were sent")
    check(refused > 0, "no state was refused")
    for session in sessions:
        scene.call("POST", f"/v1/sessions/{session}/append", dict(text="a" * TOKENS))
        scene.call("POST", f"/v1/sessions/{session}/fork")
    used = session_mib(scene)
    check(used <= room, f"sessions hold {used:.0f} MiB after prompts and forks")


@attack("fork-storm", "forks end at --sessions 200 with 429, and deleted sessions give everything back",
        memory_mib=96, after_mib=48, args=("--sessions", 200, "--session-mib", 64))
def fork_storm(scene):
    first = scene.new_session("the beginning that all share")
    ids, lock = [first], threading.Lock()

    def storm():
        for i in range(scene.choose(100, 1000)):
            with lock:
                parent = ids[i % len(ids)]
            answer = scene.call("POST", f"/v1/sessions/{parent}/fork")
            check(answer.status in (201, 409, 429), f"a fork got {answer.status}: {answer.body[:200]!r}")
            if answer.status == 201:
                with lock:
                    ids.append(answer.json()["id"])

    together([storm] * 4, scene.scaled(60))
    held = scene.metrics()["lattice_sessions"]
    check(held == len(ids) <= 200, f"{held:.0f} sessions are held, {len(ids)} were given, 200 are allowed")
    for session in ids:
        check(scene.call("DELETE", f"/v1/sessions/{session}").status == 200, f"{session} cannot be deleted")
    figures = scene.metrics()
    check(figures["lattice_sessions"] == figures["lattice_session_bytes"] == 0, "deleted sessions are still counted")


@attack("many-long-texts", "a streamed request for 128 long texts of a transformer, whose states grow, is refused or "
        "stays within its bound", memory_mib=1024, after_mib=512, wait_seconds=30.0, model="transformer",
        where_known={"--running-mib": 512})
def many_long_texts(scene):
    prompt = "b" * 2000  # 16 MB of keys and values for each text
    link = scene.connect()
    body = dict(prompt=prompt, n=128, max_tokens=4000, temperature=0, stream=True)
    wire.send(link, wire.request("POST", "/v1/completions", body))
    content, _ = wire.read_bytes(link, scene.scaled(scene.choose(30, 60)), most=scene.choose(1 << 14, 1 << 24))
    answers = wire.answers(content)
    status = answers[0].status if answers else 0
    scene.figures["status"] = status
    check(status in (200, 400, 413, 429), f"the request got {status}: {content[:200]!r}")
