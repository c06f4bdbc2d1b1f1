"""Bodies that are hard to read, or that come back in the error."""

import json

from torture import wire
from torture.registry import attack, check
from torture.server import NoStart

MIB = 1 << 20
LONGEST_ERROR = 4096
CPU_SECONDS = 3.0


def repeated(piece, size, before=b"", after=b"", between=b","):
    count = max(1, (size - len(before) - len(after)) // (len(piece) + len(between)))
    return before + between.join([piece] * count) + after


# Bodies of JSON that cost more than their length when they are read carelessly.
SHAPES = {
    "objects in a list": lambda size: repeated(b"{}", size, b'{"x":[', b"]}"),
    "lists in a list": lambda size: repeated(b"[]", size, b'{"x":[', b"]}"),
    "objects with a key": lambda size: repeated(b'{"a":1}', size, b'{"prompt":[', b"]}"),
    "many keys": lambda size: b"{" + b",".join(b'"k%d":{}' % i for i in range(size // 12)) + b"}",
    "one key again and again": lambda size: repeated(b'"prompt":{}', size, b"{", b"}"),
    "open lists": lambda size: b"[" * size,
    "open objects": lambda size: b'{"a":' * (size // 5),
    "a long number": lambda size: b'{"max_tokens":' + b"9" * size + b"}",
    "escapes": lambda size: b'{"prompt":"' + b"\\u0041" * (size // 6) + b'","max_tokens":0,"x":1}',
    "white space": lambda size: b'{"prompt":' + b" " * size + b'"a","x":1}',
}


@attack("json-in-linear-time", f"every shape of JSON is read or refused within {CPU_SECONDS:g} s of computing, and its "
        "client gets an answer", memory_mib=1024, after_mib=256, wait_seconds=0)
def json_in_linear_time(scene):
    size = scene.choose(2 * MIB, 8 * MIB - 64)
    for title, make in SHAPES.items():
        answers = []
        body = make(size)

        def ask():
            answers.append(scene.call("POST", "/v1/completions", body, seconds=30))

        try:
            spent = scene.check_cpu(CPU_SECONDS, ask)
        except Exception as broken:
            raise type(broken)(f"{title}, {len(body)} bytes: {broken}") from None
        check(answers and 400 <= answers[0].status < 500, f"{title}: got {answers[0].status if answers else 'no answer'}")
        scene.figures[title] = round(spent, 2)


@attack("errors-are-short", f"an error is at most {LONGEST_ERROR} bytes long, whatever it complains about",
        memory_mib=256, after_mib=128)
def errors_are_short(scene):
    long = "x" * scene.choose(4 * MIB, 8 * MIB - 1024)
    bodies = {
        "an unterminated string": b'{"prompt": "' + long.encode(),
        "an unknown field": json.dumps({long: 1, "prompt": "a"}).encode(),
        "an unknown model": json.dumps(dict(model=long, prompt="a")).encode(),
        "an unknown session": json.dumps(dict(session=long, prompt="a")).encode(),
        "a wrong type": json.dumps(dict(prompt="a", max_tokens=long)).encode(),
        "a long stop": json.dumps(dict(prompt="a", stop=long)).encode(),
        "a long list of stops": json.dumps(dict(prompt="a", stop=["ab"] * 100000)).encode(),
        "bytes that are not UTF-8": b'{"prompt": "' + b"\xff" * MIB + b'"}',
        "no JSON": long.encode(),
    }
    for title, body in bodies.items():
        answer = scene.call("POST", "/v1/completions", body)
        check(400 <= answer.status < 500, f"{title}: got {answer.status}: {answer.body[:200]!r}")
        check(len(answer.body) <= LONGEST_ERROR, f"{title}: got an error of {len(answer.body)} bytes")


@attack("wrong-bodies", "every path answers every body that is not for it with an error of its own")
def wrong_bodies(scene):
    paths = scene.call("GET", "/openapi.json").json()["paths"]
    session = scene.new_session("abc")
    wrong = [b"{", b"[]", b"null", b"3", b'"\xff"', b'{"text": "\xff"}', b'{"text": 3}', b'{"tokens": [300]}',
             b'{"tokens": 3}', b'{"tokens": [-1]}', b'{"tokens": [1e99]}', b'{"position": -1}', b'{"position": "x"}',
             b'{"prompt": {}}', b'{"messages": {}}', b'{"unknown": 1}', b'{"prompt": "a", "n": 129}', b"\0" * 100,
             b'{"prompt": [[1], "a"]}', b'{"prompt": "a", "max_tokens": -1}', b'{"prompt": "a", "temperature": 1e999}',
             b'{"prompt": "a", "seed": 99999999999999999999}', b'{"prompt": "a"} {}']
    for path, methods in paths.items():
        if "post" not in methods:
            continue
        for body in wrong:
            answer = scene.call("POST", path.replace("{id}", session), body)
            said = f"POST {path} {body[:60]!r}: got {answer.status}: {answer.body[:200]!r}"
            check(answer.status == 400 and "error" in (answer.json() or {}), said)


@attack("name-not-utf8", "a --name that is not UTF-8 is refused at the start, or streams go on", own_servers=True)
def name_not_utf8(scene):
    try:
        server = scene.start(name=b"\xff\xfe name")
    except NoStart:
        return
    for stream in (False, True):
        body = dict(prompt="a", max_tokens=3, temperature=0, stream=stream)
        try:
            answer = wire.exchange(server.port, wire.request("POST", "/v1/completions", body))
        except OSError as error:
            answer = wire.Answer(body=str(error).encode())
        whole = answer.status == 200 and answer.complete
        check(whole, f"stream={stream}: status {answer.status}, cut off: {server.errors()[-200:]}")
