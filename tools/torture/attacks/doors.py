"""Who is let in: the key, the Host and Origin headers, paths, and what happens before all of them."""

import time

from torture import wire
from torture.proc import MIB
from torture.registry import attack, check

KEY = "correct-horse-battery-staple"
PERCENT_KEY = "a-key-with-%41-and-more"
RANGES = b"bytes=" + b",".join([b"-"] * 4000)


@attack("ranges", "a Range, also one hidden behind a bare LF, makes no answer longer and is not acted on before the "
        "key", memory_mib=64, key=KEY)
def ranges(scene):
    page = scene.call("GET", "/").body
    for hidden in (b"X: a\nRange: " + RANGES, b"Range: " + RANGES, b"X: a\rRange: " + RANGES, b"Range : " + RANGES):
        for path in (b"/", b"/v1/models", b"/openapi.json"):
            link = scene.connect()
            line = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            wire.send(link, line + hidden + b"\r\n\r\n")
            bound = len(page) + 4096
            received, _ = wire.read_bytes(link, scene.scaled(10), most=bound + 1)
            said = f"{path.decode()} with {hidden[:20]!r}: more than {len(received)} bytes for {len(hidden)}"
            check(len(received) <= bound, said)
    for _ in range(scene.choose(20, 60)):
        silent = scene.connect(receive_buffer=4096)
        wire.send(silent, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\nRange: " + RANGES + b"\r\n\r\n")
    time.sleep(scene.choose(1.0, 5.0))


def status_of(scene, path="/v1/models", **headers):
    lines = [f"GET {path} HTTP/1.1"] + [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    answer = wire.exchange(scene.server.port, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    return answer.status


@attack("foreign-hosts", "without a key only Host headers that name this machine and pages of this server are answered")
def foreign_hosts(scene):
    port, answered = scene.server.port, []
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", f"127.0.0.1:{port}.evil.example",
                 "127.0.0.1:80.evil.example", "localhost:80@evil.example", "localhost:evil.example", "[::1].evil.example",
                 "[::1]:80.evil.example", "[::1", "localhost:-1", "localhost:99999999", "localhost evil",
                 "%6cocalhost", "127.1.evil", "0.0.0.0", "localhost,evil.example", "evil.example/localhost"):
        status = status_of(scene, Host=host)
        if not 400 <= status < 500:
            answered.append(f"Host {host!r} got {status}")
    own = f"localhost:{port}"
    for origin in ("http://evil.example", "null", f"http://{own}.evil.example", f"http://{own}@evil.example",
                   "http://localhost", f"http://{own}/", f"http://{own}, http://evil.example", "file://",
                   f"http://127.0.0.1:{port + 1}"):
        status = status_of(scene, Host=own, Origin=origin)
        if not 400 <= status < 500:
            answered.append(f"Origin {origin!r} got {status}")
    check(not answered, "; ".join(answered))
    for host in ("localhost", own, f"127.0.0.1:{port}", "127.0.0.1", "[::1]", f"[::1]:{port}"):
        check(status_of(scene, Host=host) == 200, f"Host {host!r} is not answered")
    check(status_of(scene, Host=own, Origin=f"http://{own}") == 200, "the server's own page is not answered")


@attack("key-bypass", "with a key nothing but the page and /health is answered without it, however it is asked for",
        key=KEY)
def key_bypass(scene):
    wrong = ["", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {KEY[:-1]}", f"Bearer {KEY}x", f"Bearer {KEY}{KEY}", KEY,
             f"Basic {KEY}", f"Bearer  {KEY}x", f"Bearer {KEY.upper()}", f"Bearer {KEY},", f"Bearer %63{KEY[1:]}",
             "Bearer " + "x" * 8000, f"Bearer x{KEY}", f'Bearer "{KEY}"', f"Bearer {KEY}\0"]
    paths = scene.call("GET", "/openapi.json").json()["paths"]
    guarded = [path for path, methods in paths.items() if "get" in methods and not path.startswith("/health") and "{id}" not in path]
    for path in guarded:
        check(status_of(scene, path, Host="localhost") == 401, f"{path} without a key: not 401")
        for value in wrong:
            status = status_of(scene, path, Host="localhost", Authorization=value)
            check(400 <= status < 500, f"{path} with Authorization {value[:60]!r}: got {status}")
        status = status_of(scene, path, Host="localhost", Authorization=f"Bearer {KEY}")
        check(status == 200, f"{path} with the key: got {status}")
    for path in ("//v1/models", "/v1//models", "/./v1/models", "/v1/models/", "/v1/models?x", "/v1/models#x", "/V1/models",
                 "/health/../v1/models", "/page/../v1/models", "/%76%31/models", "/v1/models%00", "/v1/models;x",
                 "http://localhost/v1/models", "/health?/v1/models", "/page/%2e%2e/v1/models"):
        with wire.connect(scene.server.port) as link:
            wire.send(link, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = wire.read_answer(link, scene.scaled(5))
        check(b'"object"' not in answer.body, f"{path} gave the models without a key")
    status = scene.call("POST", "/v1/completions", dict(prompt="a")).status
    check(status == 200, f"/v1/completions with the key: got {status}")


@attack("percent-keys", "header values are taken as they are: a key with %41 in it works, and is not the one with A",
        key=PERCENT_KEY)
def percent_keys(scene):
    for letter, status in (("%41", 200), ("A", 401), ("%2541", 401)):
        value = PERCENT_KEY.replace("%41", letter)
        got = status_of(scene, Host="localhost", Authorization=f"Bearer {value}")
        check(got == status, f"key {value!r}: got {got}, expected {status}")


@attack("path-traversal", "no path leads to a file of the machine")
def path_traversal(scene):
    for prefix in ("/page/", "/", "/v1/sessions/", "/v1/models/", "/page"):
        for path in ("../server.cc", "../../../../../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc/passwd",
                     "..%2f..%2fetc%2fpasswd", "/etc/passwd", "....//....//etc/passwd", "..\\..\\etc\\passwd", "%00",
                     "index.html%00.js", "%c0%ae%c0%ae/", "..;/etc/passwd", "%252e%252e%252fetc/passwd", "~root",
                     "proc/self/environ", "%", "%zz", "%f"):
            with wire.connect(scene.server.port) as link:
                wire.send(link, f"GET {prefix}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                answer = wire.read_answer(link, scene.scaled(5))
            check(400 <= answer.status < 500, f"{prefix}{path}: got {answer.status}: {answer.body[:100]!r}")
            check(b"root:" not in answer.body and len(answer.body) < MIB, f"{prefix}{path} gave a file")
