"""Connections that are many, slow or silent, and answers that nobody takes."""

import socket
import time

from torture import proc, wire
from torture.registry import attack, check, together

LONG_STREAM = dict(prompt="a", max_tokens=60000, temperature=0, stream=True)


@attack("unread-answers", "answers of 30 MB that nobody reads hold at most 1 GiB, and it goes back to the system",
        memory_mib=1024, after_mib=160)
def unread_answers(scene):
    content = wire.request("POST", "/tokenize", dict(text="x" * (8 << 20 if not scene.quick else 4 << 20)))

    def ask():
        link = scene.connect(receive_buffer=4096)
        wire.send(link, content)
        return link

    together([ask] * scene.choose(12, 40), scene.scaled(20))
    time.sleep(scene.choose(1.0, 15.0))


@attack("unread-streams", "streams that nobody reads stop growing, and end 10 s after the last byte was taken",
        memory_mib=128, args=("--batch", 96, "--queue", 64))
def unread_streams(scene):
    for i in range(scene.choose(16, 64)):
        link = scene.connect(receive_buffer=4096, source=f"127.0.0.{2 + i % 64}")
        wire.send(link, wire.request("POST", "/v1/completions", dict(LONG_STREAM, prompt=f"stream {i}")))
    if scene.quick:
        return time.sleep(2)
    freed = scene.server.wait_for(lambda m: m["lattice_running_sequences"] <= 1, 60)
    check(freed, "streams that nobody reads still ran after 60 s, or when the server ended")


@attack("slow-requests", "heads and bodies that come byte by byte do not hold up others, and end with 408 after 30 s")
def slow_requests(scene):
    body = wire.request("POST", "/v1/completions", dict(prompt="slow"))
    links = [scene.connect() for _ in range(scene.choose(100, 500))]
    began, sent = time.monotonic(), 0
    while links and time.monotonic() - began < scene.choose(3, 40):
        piece = body[sent:sent + 1] or b" "
        for link in list(links):
            if not wire.send(link, piece):
                links.remove(link)
        sent = min(sent + 1, len(body) - 2)
        time.sleep(0.25)
    if not scene.quick:
        check(not links, f"{len(links)} requests were still being read after {time.monotonic() - began:.0f} s")


@attack("two-thousand-connections", "2,000 connections are served or refused at once, and give back their threads and "
        "descriptors", memory_mib=256)
def two_thousand_connections(scene):
    pid = scene.server.pid
    descriptors = proc.descriptors(pid)
    links = []
    for i in range(2000):
        try:
            links.append(scene.connect(source=f"127.0.{1 + i // 200}.1"))
        except OSError:
            continue  # refused
    check(len(links) >= 1000, f"only {len(links)} connections were taken")
    for link in links:
        wire.send(link, wire.head("GET", "/health"))
    statuses = {}
    for link in links:
        status = wire.read_answer(link, scene.scaled(5)).status
        statuses[status] = statuses.get(status, 0) + 1
    scene.figures["statuses"] = statuses
    check(set(statuses) <= {0, 200, 503} and statuses.get(200, 0) >= 500, f"got {statuses}")
    scene.close()
    deadline = time.monotonic() + scene.scaled(10)
    while proc.descriptors(pid) > descriptors + 16 and time.monotonic() < deadline:
        time.sleep(0.05)
    check(proc.descriptors(pid) <= descriptors + 16, f"{proc.descriptors(pid)} descriptors remain of {descriptors}")


@attack("half-close", "a client that ends its own side gets the whole answer or an error, not a part that looks whole")
def half_close(scene):
    expected = scene.server.call("POST", "/v1/completions", dict(prompt="half", max_tokens=400, temperature=0)).json()
    for stream in (False, True):
        with wire.connect(scene.server.port) as link:
            body = dict(prompt="half", max_tokens=400, temperature=0, stream=stream)
            wire.send(link, wire.request("POST", "/v1/completions", body))
            link.shutdown(socket.SHUT_WR)
            received, _ = wire.read_bytes(link, scene.scaled(20), until=b"data: [DONE]" if stream else None)
        answers = wire.answers(received)
        if not answers or answers[0].status != 200:
            continue
        if stream:
            whole = b'"finish_reason":"length"' in received or b"data: [DONE]" not in received
            check(whole, "a stream was cut and ended with [DONE]")
        else:
            got = answers[0].json() or {}
            same = got.get("choices") == expected["choices"] and got.get("usage", {}).get("completion_tokens") == 400
            check(not answers[0].complete or same, f"200 with another text: {answers[0].body[:300]!r}")
