"""`lattice torture serve`: every promise holds in a short run, and servers that break promises are found out."""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest
from cli_program import ROOT

PROGRAM = ROOT / "tools" / "torture"


def torture(*args, timeout=600):
    command = [sys.executable, PROGRAM, "serve", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def listed():
    return re.findall(r"^([a-z0-9-]+)[^:\n]*: at most", torture("--list").stdout, re.MULTILINE)


def test_every_promise_holds():
    # Another build, e.g. one with a sanitizer: LATTICE_TORTURE_PROGRAM=build/asan/bin/lattice-run
    program = os.environ.get("LATTICE_TORTURE_PROGRAM")
    done = torture("--quick", "--json", *(["--program", program] if program else []))
    results = json.loads(done.stdout)
    assert done.returncode == 0 and not results["broken"], done.stderr
    assert results["kept"] >= len(listed()) - 4  # without the soak, and where something cannot be tried


def test_the_document_has_every_attack_and_its_bound():
    document = (ROOT / "docs" / "reliability.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \|.*\| ([\d,]+) MiB \|$", document, re.MULTILINE))
    bounds = dict(re.findall(r"^([a-z0-9-]+)[^:\n]*: at most (\d+) MiB", torture("--list").stdout, re.MULTILINE))
    assert {name: bound.replace(",", "") for name, bound in rows.items()} == bounds


# A server that answers 200 to whatever arrives, forgets nothing, and ignores SIGTERM.
CARELESS = '''
    #!{python}
    import http.server, json, signal, socketserver
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def reply(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.dumps(dict(choices=[dict(text="x")], usage=dict(completion_tokens=1))).encode()
            if self.path == "/metrics":
                body = b"lattice_running_sequences 0\\nlattice_waiting_sequences 0\\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        do_GET = do_POST = do_PUT = do_DELETE = reply
        def log_message(self, *args): pass
    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer): daemon_threads, request_queue_size = True, 256
    server = Server(("127.0.0.1", 0), Handler)
    print(f"serving at http://127.0.0.1:{{server.server_port}}", flush=True)
    server.serve_forever()
'''


@pytest.fixture(scope="module")
def careless(tmp_path_factory):
    path = tmp_path_factory.mktemp("careless") / "server"
    path.write_text(textwrap.dedent(CARELESS).lstrip().format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("attack", ["foreign-hosts", "stop-half-sent"])
def test_a_careless_server_is_found_out(careless, attack):
    done = torture("--quick", "--json", "--program", careless, "--only", attack)
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)["attacks"][0]
    assert result["outcome"] == "BROKEN" and result["reasons"]


def test_wrong_use_exits_with_two(tmp_path):
    for args, said in ((["--program", tmp_path / "none"], "there is no program"), (["--only", "nonsense"], "smuggling"),
                       (["--minutes", "0"], "--minutes")):
        done = torture(*args)
        assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr
