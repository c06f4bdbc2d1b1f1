"""The servers of a deployment on loopback: replicas of lattice-run, redis-server, nginx, and a proxy that spoils answers."""

import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Debian has nginx where only root's PATH goes.
TOOLS = {name: shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin") for name in
         ("redis-server", "nginx")}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds=30, what="a condition"):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come true in {seconds} s")
        time.sleep(0.01)


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class Process:
    """A child process that can be killed, paused and started again with the same command."""

    def __init__(self, command, log, port):
        self.command, self.log, self.port, self.process = [str(word) for word in command], Path(log), port, None

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        wait_until(lambda: self.process.poll() is not None or accepts(self.port), what=self.command[0])
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.command[0]} did not start: {self.log.read_text(errors='replace')[-2000:]}")
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=60):
        """SIGTERM; whether it ended by itself in time."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def alive(self):
        return self.process is not None and self.process.poll() is None


def replica(program, model, directory, store, key_file, name, *args):
    port = free_port()
    command = [program, "serve", "--model", model, "--port", port, "--threads", 1, "--store", store, "--state-key-file",
               key_file, "--name", "torture", *args]
    return Process(command, Path(directory) / f"{name}.log", port)


def redis(directory, *args):
    """A Redis whose every write is on disk before it is acknowledged."""
    port = free_port()
    data = Path(directory) / "redis"
    data.mkdir(exist_ok=True)
    command = [TOOLS["redis-server"], "--port", port, "--bind", "127.0.0.1", "--dir", data, "--save", "", "--appendonly",
               "yes", "--appendfsync", "always", *args]
    return Process(command, Path(directory) / "redis.log", port)


def nginx(directory, ports):
    """examples/deploy/nginx.conf with these replicas."""
    port = free_port()
    text = (ROOT / "examples" / "deploy" / "nginx.conf").read_text()
    servers = "\n".join(f"        server 127.0.0.1:{one} max_fails=1 fail_timeout=1s;" for one in ports)
    text = re.sub(r"(?:        server 127\.0\.0\.1:\d+ [^\n]*\n?)+", servers + "\n", text, count=1)
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    folder = Path(directory) / "nginx"
    folder.mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text("daemon off;\n" + text)
    return Process([TOOLS["nginx"], "-p", folder, "-c", "nginx.conf"], Path(directory) / "nginx.log", port)


class SpoiltStore:
    """A proxy in front of Redis. `mode`: "pass", "slow" (answers wait), "garbage" (answers are noise) or "refuse"."""

    def __init__(self, target):
        self.target, self.mode = target, "pass"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mode == "refuse":
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                while True:
                    ready, _, _ = select.select([client, server], [], [], 60)
                    for one in ready:
                        data = one.recv(1 << 16)
                        if not data or self.mode == "refuse":
                            return
                        if one is server and self.mode == "slow":
                            time.sleep(5)
                        if one is server and self.mode == "garbage":
                            data = bytes((byte * 7 + 13) % 256 for byte in data[:4096])
                        (server if one is client else client).sendall(data)
        except OSError:
            pass

    def close(self):
        self.listener.close()
