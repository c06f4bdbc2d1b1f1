"""Where one request ends and the next begins: a proxy in front of the server must never read it differently."""

from torture import wire
from torture.registry import attack, check, check_all, together

POST = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"text":"a"}'
CHUNKED = b"c\r\n" + BODY + b"\r\n0\r\n\r\n"
# What an attacker hides behind a request. Its answer would be the second on the connection.
HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
TE = b"Transfer-Encoding: "

# Each is refused with one answer, and what comes behind it is not read as a request.
AMBIGUOUS = {
    "two Transfer-Encoding": POST + TE + b"chunked\r\n" + TE + b"identity\r\n\r\n" + CHUNKED,
    "Transfer-Encoding twice the same": POST + TE + b"chunked\r\n" + TE + b"chunked\r\n\r\n" + CHUNKED,
    "a length and chunks": POST + b"Content-Length: 12\r\n" + TE + b"chunked\r\n\r\n" + CHUNKED,
    "chunks and a length": POST + TE + b"chunked\r\nContent-Length: 4\r\n\r\n" + CHUNKED,
    "two lengths": POST + b"Content-Length: 12\r\nContent-Length: 0\r\n\r\n" + BODY,
    "a list of lengths": POST + b"Content-Length: 12, 0\r\n\r\n" + BODY,
    "a space before the colon": POST + b"Content-Length : 12\r\n\r\n" + BODY,
    "a tab before the colon": POST + b"Content-Length\t: 12\r\n\r\n" + BODY,
    "a space before the colon of Transfer-Encoding": POST + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKED,
    "a signed length": POST + b"Content-Length: +12\r\n\r\n" + BODY,
    "a negative length": POST + b"Content-Length: -1\r\n\r\n" + BODY,
    "a hexadecimal length": POST + b"Content-Length: 0xc\r\n\r\n" + BODY,
    "a length beyond 64 bits": POST + b"Content-Length: 99999999999999999999999\r\n\r\n" + BODY,
    "percent-encoded chunked": POST + TE + b"%63hunked\r\n\r\n" + CHUNKED,
    "an unknown coding": POST + TE + b"xchunked\r\n\r\n" + CHUNKED,
    "a coding before chunked": POST + TE + b"gzip, chunked\r\n\r\n" + CHUNKED,
    "a coding behind chunked": POST + TE + b"chunked, gzip\r\n\r\n" + CHUNKED,
    "a vertical tab behind chunked": POST + TE + b"chunked\x0b\r\n\r\n" + CHUNKED,
    "a folded header": POST + b"X: a\r\n b\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a folded Transfer-Encoding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKED,
    "a bare LF between headers": POST + b"X: a\nContent-Length: 12\r\n\r\n" + BODY,
    "a bare LF that hides chunks": POST + b"X: a\nTransfer-Encoding: chunked\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a bare CR in a header": POST + b"X: a\rContent-Length: 0\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a NUL in a header": POST + b"X: a\0b\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a line without a colon": POST + b"nonsense\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a space in a name": POST + b"Content Length: 0\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a line that starts with a space": POST + b" X: a\r\nContent-Length: 12\r\n\r\n" + BODY,
    "two hosts": POST + b"Host: evil.example\r\nContent-Length: 12\r\n\r\n" + BODY,
    "a chunk without its CRLF": POST + TE + b"chunked\r\n\r\nc\r\n" + BODY + b"0\r\n\r\n",
    "a chunk that is longer than it says": POST + TE + b"chunked\r\n\r\nb\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a signed chunk": POST + TE + b"chunked\r\n\r\n+c\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a negative chunk": POST + TE + b"chunked\r\n\r\n-1\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk with 0x": POST + TE + b"chunked\r\n\r\n0xc\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk beyond 64 bits": POST + TE + b"chunked\r\n\r\n1000000000000000c\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk ended by a bare LF": POST + TE + b"chunked\r\n\r\nc\n" + BODY + b"\r\n0\r\n\r\n",
    "a GET with a body": b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n" + BODY,
    "two spaces in the request line": b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a version that is not": b"GET /health HTTP/1.1x\r\nHost: localhost\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "HTTP/2 without being asked": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\r\n\r\n" * 50,
}


def told(scene, content, seconds=5.0):
    """(answers, whether the server closed) on one connection."""
    with wire.connect(scene.server.port) as link:
        wire.send(link, content)
        received, closed = wire.read_bytes(link, scene.scaled(seconds), most=1 << 20)
    return wire.answers(received), closed


@attack("smuggling", "a request whose end is unclear is refused with 4xx or 5xx, and the connection is closed")
def smuggling(scene):
    def judge(content):
        answers, closed = told(scene, content + HIDDEN, seconds=3.0)
        statuses = [answer.status for answer in answers]
        refused = len(answers) <= 1 and all(status >= 400 for status in statuses)
        return None if refused and closed else f"got {statuses}{'' if closed else ' and an open connection'}"

    check_all(AMBIGUOUS, judge, scene.scaled(30))


@attack("well-formed-framing", "what only looks odd is served: chunks of any size, names in capitals, no space behind a "
        "colon")
def well_formed_framing(scene):
    close = b"Connection: close\r\n"
    small = b"".join(b"1\r\n%c\r\n" % c for c in BODY)
    odd = {
        "chunks": POST + close + TE + b"chunked\r\n\r\n" + CHUNKED,
        "small chunks": POST + close + TE + b"chunked\r\n\r\n" + small + b"0\r\n\r\n",
        "names in capitals": POST.replace(b"Host", b"HOST").replace(b"Content-Type", b"CONTENT-TYPE")
        + b"CONNECTION: close\r\nCONTENT-LENGTH: 12\r\n\r\n" + BODY,
        "no space behind the colon": POST + close + b"Content-Length:12\r\n\r\n" + BODY,
    }
    def judge(content):
        statuses = [answer.status for answer in told(scene, content)[0]]
        return None if statuses == [200] else f"got {statuses}"

    check_all(odd, judge, scene.scaled(30))


@attack("oversize-heads", "heads beyond 16 KiB, paths beyond 512 bytes and endless lines are refused with 4xx",
        memory_mib=64)
def oversize_heads(scene):
    line = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    heads = {
        "a long header": line + b"X: " + b"x" * (1 << 20) + b"\r\n\r\n",
        "many headers": line + b"".join(b"X%d: y\r\n" % i for i in range(20000)) + b"\r\n",
        "a long path": b"GET /" + b"a" * 8000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a long query": b"GET /health?" + b"a=b&" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a long method": b"G" * 20000 + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "no end": b"a" * (4 << 20),
        "a length that is too long": POST + b"Content-Length: 99999999999\r\n\r\n",
        "endless chunks": POST + TE + b"chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 200,
        "an endless chunk extension": POST + TE + b"chunked\r\n\r\nc;" + b"x" * (4 << 20),
    }
    def judge(content):
        answers, closed = told(scene, content, seconds=3.0)
        statuses = [answer.status for answer in answers]
        # A server that closes before it has read everything may lose its answer to a reset: none is right, too.
        refused = all(400 <= status < 500 for status in statuses) and (statuses or closed)
        return None if refused else f"got {statuses}{'' if closed else ' and an open connection'}"

    check_all(heads, judge, scene.scaled(30))


@attack("pipelining", "requests sent together are answered in their order; answers nobody reads hold the sender up, not "
        "the memory", memory_mib=64)
def pipelining(scene):
    count = scene.choose(200, 2000)
    paths = [b"/health" if i % 2 else b"/nothing" for i in range(count)]
    content = b"".join(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n" for path in paths)
    link = scene.connect()
    together([lambda: wire.send(link, content)], 0.1)
    received, _ = wire.read_bytes(link, scene.scaled(scene.choose(2, 10)), most=1 << 24)
    statuses = [answer.status for answer in wire.answers(received)]
    in_order = statuses == [200 if i % 2 else 404 for i in range(count)]
    check(in_order, f"{len(statuses)} of {count} answers: {statuses[:9]}...")
    page = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000
    for _ in range(scene.choose(8, 64)):
        silent = scene.connect(receive_buffer=4096)
        silent.setblocking(False)
        wire.send(silent, page)
