"""Sessions outside of the process, and keys with quotas."""

import os
import time

from torture import wire
from torture.registry import attack, check, together

STORED = 64  # sessions that the store may hold
ALICE, BOB = "alice-has-this-key", "bob-has-another-key"
QUOTA = 3000  # tokens per minute of alice


@attack("store-flood", f"--store-sessions {STORED} bounds a directory whatever is written to it, and sessions that left "
        "memory for it cost none", memory_mib=96, own_servers=True)
def store_flood(scene):
    folder = scene.stage.directory / "flooded"
    args = ("--store", folder, "--store-sessions", STORED, "--sessions", 8, "--idle-seconds", 1)
    scene.server = server = scene.start(args=args)
    made = []

    def storm():
        for _ in range(scene.choose(40, 1000)):
            answer = scene.call("POST", "/v1/sessions", dict(prompt="a session of many"))
            check(answer.status in (201, 409, 429, 503), f"a session got {answer.status}: {answer.body[:200]!r}")
            if answer.status == 201:
                made.append(answer.json()["id"])

    together([storm] * 4, scene.scaled(300))
    files = list(folder.glob("*/*.state"))
    # Those in use stay beyond the limit: the four that are being made.
    check(len(files) <= STORED + 4, f"{len(files)} sessions are stored, {STORED} are allowed")
    check(scene.metrics()["lattice_sessions"] <= 8, "more sessions are in memory than --sessions says")
    scene.figures.update(made=len(made), stored=len(files))
    for session in made[:8] + made[-8:]:
        answer = scene.call("GET", f"/v1/sessions/{session}")
        check(answer.status in (200, 404), f"a session got {answer.status} behind the flood: {answer.body[:200]!r}")
    for name in ("session-" + "0" * 32, "../key", "..%2fkey", "key", "session-" + "f" * 31 + "/", "session-" + "F" * 32,
                 "session-" + "a" * 4000, "owners"):
        status = scene.call("GET", f"/v1/sessions/{name}").status
        check(400 <= status < 500, f"/v1/sessions/{name[:40]} got {status}")
    check(server.stop() is not None, "SIGTERM did not end it within the grace time and 2 s")


@attack("spoilt-files", "what someone else writes into the store's directory is refused, never taken for a session and "
        "never the end of the server", memory_mib=96, own_servers=True)
def spoilt_files(scene):
    folder = scene.stage.directory / "spoilt"
    scene.server = server = scene.start(args=("--store", folder, "--sessions", 1, "--idle-seconds", 1))
    sessions = [scene.new_session(f"session {i}") for i in range(4)]
    paths = {session: folder / session[8:10] / f"{session}.state" for session in sessions}
    victim, other = sessions[0], sessions[1]
    whole = paths[victim].read_bytes()
    for number in range(scene.choose(60, 600)):
        scene.new_session("makes the victim leave memory")
        damaged = spoilt(scene.random, whole, paths[other].read_bytes(), number)
        put(paths[victim], damaged)
        answer = scene.call("GET", f"/v1/sessions/{victim}")
        # session_damaged, or what the store gave is no session at all.
        check(damaged == whole or answer.status in (500, 503) and (answer.json() or {}).get("error"),
              f"damage {number} got {answer.status}: {answer.body[:200]!r}")
        put(paths[victim], whole)
    os.unlink(paths[other])
    os.mkfifo(paths[other])
    answer = scene.call("GET", f"/v1/sessions/{other}", seconds=10)
    check(answer.status in (404, 500, 503), f"a pipe in place of a session got {answer.status}")
    answer = scene.call("GET", f"/v1/sessions/{victim}")
    check(answer.status == 200, f"a session whose file is whole again got {answer.status}: {answer.body[:200]!r}")
    check(server.stop() is not None, "SIGTERM did not end it within the grace time and 2 s")


def put(path, content):
    """As the server itself writes: never half a file."""
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.rename(path)


def spoilt(draw, whole, other, number):
    """A file that is cut, changed, longer, empty, another session's, or the head of one with the value of another."""
    kind = number % 6
    if kind == 0:
        return whole[:draw.randrange(len(whole))]
    if kind == 1:
        at = draw.randrange(len(whole))
        return whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1:]
    if kind == 2:
        return whole + draw.randbytes(draw.randrange(1, 1 << 16))
    if kind == 3:
        return other
    if kind == 4:
        return whole.partition(b"\n")[0] + b"\n" + other.partition(b"\n")[2]
    return draw.randbytes(draw.randrange(1 << 12))


@attack("quotas", f"a key gets its {QUOTA} tokens a minute and its sessions, not those of others, however it asks",
        memory_mib=128, own_servers=True)
def quotas(scene):
    keys = scene.stage.directory / "keys.toml"
    keys.write_text(f'[alice]\nkey = "{ALICE}"\ntokens_per_minute = {QUOTA}\nsessions = 5\n[bob]\nkey = "{BOB}"\n')
    scene.server = server = scene.start(args=("--keys-file", keys, "--batch", 32, "--queue", 32))
    answers, waits, began = [], [], time.monotonic()
    deadline = began + scene.choose(5, 30)

    def ask(key, method, path, body=None):
        return wire.exchange(server.port, wire.request(method, path, body, key=key), scene.scaled(60))

    def alice():
        while time.monotonic() < deadline:
            for path, body in (("/v1/completions", dict(prompt="a" * 50, max_tokens=50, n=2)),
                               ("/v1/embeddings", dict(input=["a" * 100])),
                               ("/v1/chat/completions", dict(messages=[dict(role="user", content="a" * 50)], max_tokens=50))):
                answer = ask(ALICE, "POST", path, body)
                check(answer.status in (200, 429), f"{path} got {answer.status}: {answer.body[:200]!r}")
                answers.append(answer)

    def bob():
        while time.monotonic() < deadline:
            start = time.monotonic()
            answer = ask(BOB, "POST", "/v1/completions", dict(prompt="b", max_tokens=20, temperature=0))
            check(answer.status == 200, f"the other key got {answer.status}: {answer.body[:200]!r}")
            waits.append(time.monotonic() - start)

    together([alice] * 16 + [bob], scene.scaled(120))
    used = sum(answer.json()["usage"]["total_tokens"] for answer in answers if answer.status == 200)
    # What was under way when the last token was spent: 16 requests of at most 200 tokens.
    allowed = QUOTA + QUOTA * (time.monotonic() - began) / 60 + 16 * 200
    scene.figures.update(used=used, allowed=round(allowed), longest_wait=round(max(waits), 2))
    check(used <= allowed, f"{used} tokens were used, {allowed:.0f} are allowed")
    check(any(answer.status == 429 for answer in answers), "the quota was never reached")
    check(max(waits) <= scene.scaled(6), f"the other key waited {max(waits):.1f} s")
    mine = [ask(BOB, "POST", "/v1/sessions", {}).json()["id"] for _ in range(2)]
    for session in mine:
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/state"), ("POST", "/fork")):
            status = ask(ALICE, method, f"/v1/sessions/{session}{path}").status
            check(status in (404, 429), f"{method} {path} of another key's session got {status}")
    check(ask(BOB, "GET", f"/v1/sessions/{mine[0]}").status == 200, "a session is gone for its own key")
    check(ask("alice-has-this-kez", "GET", "/v1/models").status == 401, "a key that differs in one letter is taken")
    check(server.stop() is not None, "SIGTERM did not end it within the grace time and 2 s")
