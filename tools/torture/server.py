"""A server under attack: `lattice-run serve` on loopback, its memory watched from its first moment."""

import os
import re
import resource
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

from torture import proc, wire

SANITIZERS = {b"__asan_init": "asan", b"__tsan_init": "tsan"}
REPORTS = ("ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "runtime error:", "ERROR: LeakSanitizer",
           "terminate called")
GRACE_SECONDS = 1
# What stopping may take beyond the grace time.
STOP_SECONDS = 2.0


class Program:
    """The program under test, and what a sanitizer in it costs."""

    def __init__(self, path):
        self.path, self._help = Path(path), None
        content = self.path.read_bytes()
        self.sanitizer = next((name for mark, name in SANITIZERS.items() if mark in content), "")
        # Sanitizers keep shadows and freed memory, and compute slower: bounds on both are wider under them.
        self.memory = {"asan": 4, "tsan": 8}.get(self.sanitizer, 1)
        self.time = {"asan": 5, "tsan": 15}.get(self.sanitizer, 1)

    def has(self, option):
        """Whether `serve` has this option."""
        if self._help is None:
            command = [self.path, "serve", "--help"]
            self._help = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
        return option in self._help


class Server:
    """A running server. `limits` are rlimits, `uid` another user to run as."""

    def __init__(self, program, model, directory, args=(), key=None, name=b"torture", limits=(), uid=None, ceiling=0):
        self.program, self.key, self.ceiling = program, key, ceiling
        self.killed, self.killed_at, self.peak, self.stderr = False, 0, 0, Path(directory) / "stderr"
        environment = {k: v for k, v in os.environ.items() if k != "LATTICE_API_KEY"}
        if key:
            environment["LATTICE_API_KEY"] = key
        environment.setdefault("ASAN_OPTIONS", "quarantine_size_mb=16:allocator_may_return_null=0")

        def prepare():
            for which, value in dict(limits).items():
                resource.setrlimit(which, (value, value))
            if uid is not None:
                os.setgid(uid)
                os.setuid(uid)

        command = [str(program.path), "serve", "--model", str(model), "--port", "0", "--threads", "1",
                   "--grace-seconds", str(GRACE_SECONDS), "--name", name, *map(str, args)]
        with self.stderr.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment,
                                            preexec_fn=prepare)
        self.pid = self.process.pid
        threading.Thread(target=self._watch, daemon=True).start()
        self.port = self._port(seconds=20 * program.time)
        self.start_bytes = proc.resident_bytes(self.pid)  # what bounds on its memory are counted from

    def _port(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline().decode(errors="replace") if ready else ""
        found = re.search(r"http://\S+:(\d+)", line)
        if not found:
            self.kill()
            raise NoStart(f"the server did not start: {line or self.errors() or 'it said nothing'}")
        return int(found[1])

    def _watch(self):
        while self.alive():
            try:
                self.peak = max(self.peak, proc.peak_bytes(self.pid))
                resident = proc.resident_bytes(self.pid)
            except OSError:
                return
            if self.ceiling and resident > self.ceiling:
                self.killed_at = resident
                self.kill()
            time.sleep(0.01)

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        if self.alive():
            self.killed = True
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def errors(self):
        return self.stderr.read_text(errors="replace").strip()

    def report(self):
        """The line of a sanitizer or of the run-time library that tells of a crash; empty when there is none."""
        return next((line for line in self.errors().splitlines() if any(mark in line for mark in REPORTS)), "")

    def call(self, method, path, body=None, headers=(), seconds=60.0, source=wire.ATTACKER):
        """One request on a connection of its own."""
        return wire.exchange(self.port, wire.request(method, path, body, headers, self.key), seconds, source)

    def metrics(self):
        """The figures of /metrics; None when the server does not give them."""
        try:
            answer = self.call("GET", "/metrics", seconds=5, source=wire.SERVER)
        except OSError:
            return None
        if answer.status != 200:
            return None
        lines = [line.split() for line in answer.body.decode().splitlines() if not line.startswith("#")]
        return {line[0]: float(line[1]) for line in lines if len(line) == 2}

    def wait_for(self, condition, seconds):
        """Whether condition(metrics) came true in time; None as metrics counts as not yet."""
        deadline = time.monotonic() + seconds * self.program.time
        while self.alive():
            figures = self.metrics()
            if figures is not None and condition(figures):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return False

    def stop(self):
        """SIGTERM; seconds until the end, or None when it had to be killed because it took longer than promised."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=GRACE_SECONDS + STOP_SECONDS * self.program.time)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        return time.monotonic() - began


class NoStart(Exception):
    """The server did not begin to serve."""
