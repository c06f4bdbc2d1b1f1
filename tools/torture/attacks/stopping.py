"""SIGTERM while clients do what they can to keep the server busy."""

import threading
import time

from torture import wire
from torture.registry import attack, check, together
from torture.server import GRACE_SECONDS, STOP_SECONDS

PROMISE = f"ends within the grace time ({GRACE_SECONDS} s) and {STOP_SECONDS:g} s of SIGTERM"


def stop(scene, what):
    seconds = scene.server.stop()
    check(seconds is not None, f"{what}: still running {GRACE_SECONDS + scene.scaled(STOP_SECONDS):g} s after SIGTERM")
    code = scene.server.process.returncode
    check(code == 0, f"{what}: ended with {code}: {scene.server.errors()[-200:]}")
    scene.figures["seconds"] = round(seconds, 2)


@attack("stop-half-sent", f"with half-sent heads and bodies it {PROMISE}", wait_seconds=0)
def stop_half_sent(scene):
    body = wire.request("POST", "/v1/completions", dict(prompt="half"))
    for _ in range(scene.choose(20, 200)):
        for content in (body[:30], body[:-3], b"", body + body[:30]):
            wire.send(scene.connect(), content)
    time.sleep(0.3)
    stop(scene, "half-sent requests")


@attack("stop-unread", f"with answers and streams that nobody reads it {PROMISE}", wait_seconds=0, memory_mib=1024)
def stop_unread(scene):
    stream = wire.request("POST", "/v1/completions", dict(prompt="unread", max_tokens=60000, temperature=0, stream=True))
    long = wire.request("POST", "/tokenize", dict(text="x" * (2 << 20)))
    for content in [stream] * 4 + [long] * 4:
        wire.send(scene.connect(receive_buffer=4096), content)
    scene.server.wait_for(lambda m: m["lattice_generated_tokens_total"] > 1000, 5)
    time.sleep(1.0)
    stop(scene, "unread answers")


@attack("stop-while-parsing", f"with bodies that are long to read it {PROMISE}", wait_seconds=0, memory_mib=1024)
def stop_while_parsing(scene):
    body = b'{"x":[' + b",".join([b"{}"] * 170000) + b"]}"
    for _ in range(2):
        wire.send(scene.connect(), wire.request("POST", "/v1/completions", body))
    time.sleep(0.3)
    scene.close()
    stop(scene, "bodies being read")


@attack("stop-in-overload", f"with four times as many texts as places it {PROMISE}, and what it answers is whole or "
        "an error", wait_seconds=0, args=("--batch", 8, "--queue", 24), memory_mib=128)
def stop_in_overload(scene):
    links = []
    for i in range(40):
        links.append(scene.connect())
        body = dict(prompt=f"running {i}", max_tokens=60000, temperature=0, stream=i % 2 == 0)
        wire.send(links[-1], wire.request("POST", "/v1/completions", body))
    scene.server.wait_for(lambda m: m["lattice_generated_tokens_total"] > 100, 5)
    told = []
    readers = [lambda link=link: wire.read_bytes(link, 30)[0] for link in links]
    reading = threading.Thread(target=lambda: told.extend(together(readers)))
    reading.start()
    stop(scene, "overload")
    reading.join()
    for received in told:
        answer, _ = wire.parse(received or b"")
        status = answer.status if answer else 0
        ended = status in (429, 503) or b'"error"' in received or b'"finish_reason":"length"' in received
        check(ended, f"a text that was running got status {status} and no end: ...{(received or b'')[-100:]!r}")
