"""Starts `lattice-run serve` on a free port, for the test_serve* modules."""

import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

from cli_program import ROOT, train, write_text

RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"


def train_model(directory):
    """A small trained model to serve."""
    train(write_text(directory / "text.txt"), directory / "book", "train.steps=30")
    return directory / "book"


class Served:
    def __init__(self, process, url):
        self.process, self.url = process, url

    def call(self, path, body=None, method=None, headers=()):
        """(status, JSON) of one request; a body is sent as JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **dict(headers)},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def resident_bytes(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


@contextlib.contextmanager
def serve(model, *args, key=None, port=0):
    """A server, ended by SIGTERM when the test has not killed it."""
    environment = {name: value for name, value in os.environ.items() if name != "LATTICE_API_KEY"}
    if key:
        environment["LATTICE_API_KEY"] = key
    command = [RUNNER, "serve", "--model", model, "--port", port, "--threads", 1, "--grace-seconds", 2, *args]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield Served(process, found[0])
    finally:
        killed = process.poll() == -signal.SIGKILL
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(timeout=30) == (-signal.SIGKILL if killed else 0)
