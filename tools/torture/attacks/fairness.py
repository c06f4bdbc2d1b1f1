"""One address that takes all there is, and a correct client at another address."""

import time

from torture import wire
from torture.registry import attack

SERVED_WITHIN = 6.0


@attack("many-texts-for-one", f"four requests for 128 endless texts each do not shut out others: a correct client is "
        f"served within {SERVED_WITHIN:g} s", memory_mib=512, wait_seconds=SERVED_WITHIN)
def many_texts_for_one(scene):
    deadline = time.monotonic() + scene.scaled(SERVED_WITHIN + scene.choose(1, 30))
    body = dict(prompt="mine", n=128, max_tokens=60000, temperature=0, stream=True)
    content = wire.request("POST", "/v1/completions", body)
    links = []
    while time.monotonic() < deadline:
        while len(links) < 4:
            links.append(scene.connect())
            wire.send(links[-1], content)
        for link in list(links):
            received, closed = wire.read_bytes(link, 0.05, most=1 << 20)
            if closed or not received:
                links.remove(link)  # ended by the server: ask again
                link.close()


def hold(scene, seconds, head):
    """Keeps the server's 1,024 connections full of clients that say `head` and no more."""
    deadline = time.monotonic() + scene.scaled(seconds)
    links = []
    while time.monotonic() < deadline:
        try:
            while len(links) < 1100:
                links.append(scene.connect(timeout=1))
                wire.send(links[-1], head)
        except OSError:
            pass  # refused: the server is full, as wanted
        time.sleep(0.2)
        open_links = []
        for link in links:
            link.setblocking(False)
            try:
                alive = link.recv(4096) != b""
            except BlockingIOError:
                alive = True
            except OSError:
                alive = False
            open_links.append(link) if alive else link.close()
        links = open_links


@attack("silent-connections", f"1,100 connections that say nothing, kept up: a correct client is served within "
        f"{SERVED_WITHIN:g} s", memory_mib=256, wait_seconds=SERVED_WITHIN)
def silent_connections(scene):
    hold(scene, SERVED_WITHIN + scene.choose(1, 60), b"")


@attack("half-sent-connections", f"1,100 connections with half a head, kept up: a correct client is served within "
        f"{SERVED_WITHIN:g} s", memory_mib=256, wait_seconds=SERVED_WITHIN)
def half_sent_connections(scene):
    hold(scene, SERVED_WITHIN + scene.choose(1, 60), b"GET /health HTTP/1.1\r\nHost: local")
