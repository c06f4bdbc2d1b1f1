"""What a store costs, and what two replicas behind nginx serve: ./lattice bench serve --stores."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from torture.models import write_model  # noqa: E402
from torture.sessions import services  # noqa: E402

PROGRAMS = ROOT / "build" / "release" / "bin"


def measured(*args):
    command = [PROGRAMS / "lattice_bench_serve", "--json", *args]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT, timeout=7200)
    if done.returncode != 0:
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def stores(config, seconds, tokens, busy):
    """Figures of memory, directory and, where redis-server is installed, Redis."""
    args = ["--stores", "--config", config, "--seconds", seconds, "--tokens", tokens, "--busy", busy]
    if not services.TOOLS["redis-server"]:
        return measured(*args)["stores"]
    with tempfile.TemporaryDirectory() as directory:
        redis = services.redis(directory).start()
        try:
            return measured(*args, "--redis", f"redis://127.0.0.1:{redis.port}/0")["stores"]
        finally:
            redis.kill()


def many(config, count):
    """Memory of a server while `count` sessions are made, of which few are in memory."""
    return measured("--many", count, "--prompt", 4, "--config", config)


ROUNDS = 3


def replicas(seconds, tokens):
    """Tokens per second of one replica, and of two behind nginx, in turn; empty where a program is missing."""
    if not all(services.TOOLS.values()):
        return {}
    with tempfile.TemporaryDirectory() as directory:
        model = write_model("memory", Path(directory) / "model")
        key = Path(directory) / "key"
        key.write_text("a-key-for-this-measurement\n")
        redis = services.redis(directory).start()
        servers = [services.replica(PROGRAMS / "lattice-run", model, directory, f"redis://127.0.0.1:{redis.port}/0", key, name)
                   for name in ("one", "two")]
        out, running = {"one": [], "two behind nginx": []}, [redis]
        try:
            load = ["--seconds", seconds, "--tokens", tokens, "--places", 32, "--port"]
            running += [one.start() for one in servers]
            front = services.nginx(directory, [one.port for one in servers])
            running.append(front.start())
            for _ in range(ROUNDS):
                for name, port in zip(out, (servers[0].port, front.port)):
                    out[name].append(measured(*load, port)["tokens_per_second"])
            return out
        finally:
            for process in running:
                process.kill()
