"""HTTP/1.1 by hand, so that an attack can say exactly what it wants, and only to 127.0.0.1.

Attacks come from 127.0.0.2 and its neighbours, the correct client from 127.0.0.1: a server that bounds what one
address may take can tell them apart.
"""

import json
import socket
import struct
import time
from dataclasses import dataclass, field

SERVER = "127.0.0.1"
ATTACKER = "127.0.0.2"


@dataclass
class Answer:
    status: int = 0
    headers: dict = field(default_factory=dict)  # names in lower case
    body: bytes = b""
    complete: bool = False

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def connect(port, source=ATTACKER, receive_buffer=0, timeout=10.0):
    """A connected socket. `receive_buffer` bounds what the system takes for a client that does not read."""
    link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if receive_buffer:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        link.settimeout(timeout)
        # The port is chosen at connect: thousands of connections from one address must not run out of them.
        link.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
        link.bind((source, 0))
        link.connect((SERVER, port))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        link.close()
        raise
    return link


def reset(link):
    """Closes so that the other side gets a reset instead of an orderly end."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


def head(method, path, headers=(), host="localhost"):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in dict(headers).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def request(method, path, body=None, headers=(), key=None):
    """The bytes of a whole request; a body that is not bytes is sent as JSON."""
    headers = dict(headers)
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if body is None:
        return head(method, path, headers)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/octet-stream" if method == "PUT" else "application/json"
    return head(method, path, {"Content-Type": kind, "Content-Length": len(content), **headers}) + content


def read_bytes(link, seconds, most=1 << 26, until=None, before=b""):
    """`before` and what comes until the other side closes, `until` occurs, `most` bytes are there, or time is up.

    Returns (bytes, whether the other side closed).
    """
    content, deadline = bytearray(before), time.monotonic() + seconds
    while len(content) < most:
        left = deadline - time.monotonic()
        if left <= 0:
            return bytes(content), False
        link.settimeout(left)
        try:
            piece = link.recv(1 << 16)
        except TimeoutError:
            return bytes(content), False
        except OSError:
            return bytes(content), True
        if not piece:
            return bytes(content), True
        content += piece
        if until is not None and content.find(until, max(0, len(content) - len(piece) - len(until))) >= 0:
            return bytes(content), False
    return bytes(content), False


def _dechunk(content):
    """(body, bytes used, complete) of a chunked body."""
    body, at = bytearray(), 0
    while True:
        end = content.find(b"\r\n", at)
        if end < 0:
            return bytes(body), at, False
        size = int(content[at:end].split(b";")[0] or b"0", 16)
        if size == 0:
            return bytes(body), end + 4, content[end:end + 4] == b"\r\n\r\n"
        body += content[end + 2:end + 2 + size]
        at = end + 2 + size + 2
        if at > len(content):
            return bytes(body), len(content), False


def parse(content):
    """(first answer, the bytes behind it); (None, content) when there is no whole head."""
    end = content.find(b"\r\n\r\n")
    if end < 0 or not content.startswith(b"HTTP/1."):
        return None, content
    lines = content[:end].decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    answer = Answer(int(lines[0].split()[1]), headers)
    rest = content[end + 4:]
    if answer.status == 100:
        return parse(rest)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        answer.body, used, answer.complete = _dechunk(rest)
        return answer, rest[used:]
    size = int(headers.get("content-length", 0))
    answer.body, answer.complete = rest[:size], len(rest) >= size
    return answer, rest[size:]


def answers(content):
    """All answers in the bytes that a connection gave."""
    found = []
    while content:
        answer, content = parse(content)
        if answer is None:
            break
        found.append(answer)
    return found


def read_answer(link, seconds=30.0):
    """One answer from a connection; its status is 0 when the connection ended before a whole head came."""
    deadline = time.monotonic() + seconds
    content, closed = read_bytes(link, seconds, until=b"\r\n\r\n")
    answer, _ = parse(content)
    if answer is None or answer.complete or closed:
        return answer or Answer()
    chunked = answer.headers.get("transfer-encoding", "").lower() == "chunked"
    missing = 1 << 30 if chunked else int(answer.headers["content-length"]) - len(answer.body)
    content, _ = read_bytes(link, deadline - time.monotonic(), most=len(content) + missing,
                            until=b"\r\n0\r\n\r\n" if chunked else None, before=content)
    return parse(content)[0]


def exchange(port, content, seconds=30.0, source=ATTACKER):
    """Sends bytes on a connection of its own and returns one answer; a send that is cut off still reads it."""
    with connect(port, source, timeout=seconds) as link:
        send(link, content)
        return read_answer(link, seconds)


def send(link, content):
    """Sends all; False when the other side no longer takes it."""
    try:
        link.sendall(content)
    except OSError:
        return False
    return True
