"""What happens to a deployment whose servers are killed, paused and restarted while 200 sessions are in use.

Each fault is a function of a Stage. Every session must go on bit-equal to one that was never disturbed, or give a clear
error; a fault returns the problems it found."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from torture.models import write_model
from torture.sessions import services
from torture.sessions.clients import Fleet, ask

LEASE_MS, TIMEOUT_MS = 1500, 1000


@dataclass
class Result:
    name: str
    problems: list
    seconds: float = 0
    figures: dict = field(default_factory=dict)


class Stage:
    """Two replicas with a Redis behind them, and a reference server that nobody disturbs."""

    def __init__(self, program, directory, seed, quick):
        self.program, self.directory, self.seed, self.quick = program, Path(directory), seed, quick
        self.count = 8 if quick else 200
        self.model = write_model("memory", self.directory / "model")
        self.key_file = self.directory / "state-key"
        self.key_file.write_text("a key that all servers of this stage share\n".replace(" ", "-"))
        self.started = []
        self.reference = self.start(services.replica(program, self.model, directory, "memory", self.key_file, "reference",
                                                     "--sessions", 4096))

    def start(self, process):
        self.started.append(process)
        return process.start()

    def replicas(self, store, *args, count=2):
        common = ("--lease-ms", LEASE_MS, "--store-timeout-ms", TIMEOUT_MS, "--grace-seconds", 5, *args)
        return [self.start(services.replica(self.program, self.model, self.directory, store, self.key_file,
                                            f"replica-{len(self.started)}", *common)) for _ in range(count)]

    def fleet(self, ports, count=None):
        fleet = Fleet(ports, count or self.count, self.seed)
        for session in fleet.sessions:
            fleet.begin(session)
        return fleet

    def finish(self, fleet, ports, problems=()):
        fleet.compare(self.reference.port, ports)
        return list(problems) + fleet.problems

    def clear(self):
        for process in self.started[1:]:
            if process.alive():
                process.signal(signal.SIGCONT)
                process.kill()
        del self.started[1:]

    def close(self):
        self.clear()
        self.reference.kill()


def killed(stage, figures):
    """kill -9 of a replica at random moments; it is started again at once."""
    redis = stage.start(services.redis(stage.directory))
    replicas = stage.replicas(f"redis://127.0.0.1:{redis.port}/0")
    ports = [one.port for one in replicas]
    fleet = stage.fleet(ports)
    kills = 6 if stage.quick else 50

    def disturb():
        for _ in range(kills):
            time.sleep(fleet.random.uniform(0.05, 0.6))
            victim = fleet.random.choice(replicas)
            victim.kill()
            victim.start()

    fleet.run(disturb)
    figures.update(kills=kills, sessions=len(fleet.sessions), answered=fleet.answered, retries=fleet.retries)
    return stage.finish(fleet, ports)


def paused(stage, figures):
    """SIGSTOP of a replica for longer than its lease, in the middle of its work."""
    redis = stage.start(services.redis(stage.directory))
    replicas = stage.replicas(f"redis://127.0.0.1:{redis.port}/0")
    ports = [one.port for one in replicas]
    fleet = stage.fleet(ports)
    pauses = 1 if stage.quick else 6

    def disturb():
        for i in range(pauses):
            time.sleep(fleet.random.uniform(0.1, 0.5))
            victim = replicas[i % len(replicas)]
            victim.signal(signal.SIGSTOP)
            fleet.ports = [one.port for one in replicas if one is not victim]
            time.sleep(2 * LEASE_MS / 1000)
            victim.signal(signal.SIGCONT)
            fleet.ports = ports
        time.sleep(0.5)

    fleet.run(disturb)
    lost = sum(metric(port, "lattice_store_lost_total") for port in ports)
    figures.update(pauses=pauses, sessions=len(fleet.sessions), answered=fleet.answered, retries=fleet.retries,
                   writes_refused=int(lost))
    return stage.finish(fleet, ports)


def redis_restarted(stage, figures):
    """kill -9 of Redis, which comes back with its data."""
    redis = stage.start(services.redis(stage.directory))
    replicas = stage.replicas(f"redis://127.0.0.1:{redis.port}/0")
    ports = [one.port for one in replicas]
    fleet = stage.fleet(ports)
    restarts = 1 if stage.quick else 5

    def disturb():
        for _ in range(restarts):
            time.sleep(fleet.random.uniform(0.3, 1.0))
            redis.kill()
            time.sleep(fleet.random.uniform(0.1, 1.0))
            redis.start()
        time.sleep(0.5)

    fleet.run(disturb)
    figures.update(restarts=restarts, sessions=len(fleet.sessions), answered=fleet.answered, retries=fleet.retries)
    return stage.finish(fleet, ports)


def redis_without_data(stage, figures):
    """Redis comes back empty: every session is a clear 404, none begins anew, and new ones work."""
    redis = stage.start(services.redis(stage.directory))
    replicas = stage.replicas(f"redis://127.0.0.1:{redis.port}/0")
    ports = [one.port for one in replicas]
    fleet = stage.fleet(ports)
    problems = []

    def disturb():
        time.sleep(0.5)
        fleet.may_lose = True
        redis.kill()
        subprocess.run(["rm", "-rf", str(stage.directory / "redis" / "appendonlydir")], check=True)
        redis.start()
        services.wait_until(lambda: all(session.lost for session in fleet.sessions), 90, "the loss of all sessions")

    fleet.run(disturb)
    for session in fleet.sessions:
        status, answer = ask(ports[0], "GET", f"/v1/sessions/{session.id}")
        if status != 404 or json.loads(answer)["error"]["code"] != "session_not_found":
            problems.append(f"session {session.number} got {status} behind the loss: {answer[:200]!r}")
    fleet = stage.fleet(ports, 4)
    fleet.run(lambda: time.sleep(0.5))
    figures.update(sessions=stage.count)
    return stage.finish(fleet, ports, problems)


def spoilt_store(stage, figures):
    """A store that answers slowly, with garbage, or not at all, between times when it works."""
    redis = stage.start(services.redis(stage.directory))
    proxy = services.SpoiltStore(redis.port)
    replicas = stage.replicas(f"redis://127.0.0.1:{proxy.port}/0")
    ports = [one.port for one in replicas]
    fleet = stage.fleet(ports)
    rounds = 1 if stage.quick else 3

    def disturb():
        for _ in range(rounds):
            for mode in ("garbage", "slow", "refuse"):
                time.sleep(0.5)
                proxy.mode = mode
                time.sleep(1.5 * TIMEOUT_MS / 1000)
                status, answer = ask(ports[0], "GET", "/health/ready")
                if (status, json.loads(answer or b"{}").get("status")) != (503, "store_unreachable"):
                    fleet.problems.append(f"with a store that is {mode}, ready said {status} {answer[:100]!r}")
                status, answer = ask(ports[0], "POST", "/v1/completions", {"prompt": "x", "max_tokens": 2})
                if status != 200:
                    fleet.problems.append(f"with a store that is {mode}, a request without a session got {status}")
                proxy.mode = "pass"
        time.sleep(1)

    fleet.run(disturb)
    proxy.mode = "pass"
    figures.update(rounds=rounds, sessions=len(fleet.sessions), answered=fleet.answered, retries=fleet.retries)
    problems = stage.finish(fleet, ports)
    proxy.close()
    return problems


def full_disk(stage, figures):
    """A directory on a disk that is full: clear errors, and everything that was acknowledged is there."""
    folder = stage.directory / "small-disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        figures.update(skipped="no right to mount a small disk")
        return []
    try:
        (one,) = stage.replicas(folder / "store", "--idle-seconds", 1, count=1)
        filler = folder / "filler"
        fleet = stage.fleet([one.port], 8)

        def disturb():
            time.sleep(0.3)
            out = os.open(filler, os.O_WRONLY | os.O_CREAT)
            try:
                while True:
                    os.write(out, b"x" * 4096)
            except OSError:
                os.close(out)
            time.sleep(0.5)
            status, answer = ask(one.port, "POST", "/v1/sessions", {"prompt": "no room"})
            if status != 503:
                fleet.problems.append(f"a session on a full disk got {status}: {answer[:200]!r}")
            filler.unlink()
            time.sleep(0.5)

        fleet.run(disturb, threads=2)
        figures.update(sessions=len(fleet.sessions), answered=fleet.answered, retries=fleet.retries)
        return stage.finish(fleet, [one.port])
    finally:
        stage.clear()
        subprocess.run(["umount", str(folder)], check=False)


def rolling_restart(stage, figures):
    """Both replicas are restarted in turn behind nginx; no request that repeats itself fails, no session is lost."""
    if not services.TOOLS["nginx"]:
        figures.update(skipped="no nginx")
        return []
    redis = stage.start(services.redis(stage.directory))
    replicas = stage.replicas(f"redis://127.0.0.1:{redis.port}/0", "--drain-seconds", 1)
    front = stage.start(services.nginx(stage.directory, [one.port for one in replicas]))
    fleet = stage.fleet([front.port])
    rounds = 1 if stage.quick else 3

    def disturb():
        for _ in range(rounds):
            for one in replicas:
                time.sleep(0.5)
                if not one.stop():
                    fleet.problems.append("a replica did not end by itself on SIGTERM")
                one.start()
        time.sleep(0.5)

    fleet.run(disturb)
    figures.update(restarts=2 * rounds, sessions=len(fleet.sessions), answered=fleet.answered, retries=fleet.retries)
    return stage.finish(fleet, [front.port])


FAULTS = {function.__name__.replace("_", "-"): function for function in
          (killed, paused, redis_restarted, redis_without_data, spoilt_store, full_disk, rolling_restart)}
NEED_REDIS = set(FAULTS) - {"full-disk"}


def metric(port, name):
    """A figure of /metrics; 0 when it is not there."""
    for line in ask(port, "GET", "/metrics")[1].decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return 0


def run(program, directory, seed, quick, only=None, progress=print):
    """Runs the faults; returns their results."""
    results = []
    for name in only or FAULTS:
        folder = Path(directory) / name
        folder.mkdir(parents=True)
        result = Result(name, [])
        if name in NEED_REDIS and not services.TOOLS["redis-server"]:
            result.figures["skipped"] = "no redis-server"
            results.append(result)
            continue
        stage = Stage(program, folder, seed, quick)
        began = time.monotonic()
        try:
            result.problems = FAULTS[name](stage, result.figures)
        except (RuntimeError, TimeoutError, OSError, KeyError) as error:
            result.problems = [f"{type(error).__name__}: {error}"]
        finally:
            stage.close()
        result.seconds = round(time.monotonic() - began, 1)
        results.append(result)
        progress(f"{name:20} {'BROKEN' if result.problems else 'kept':8} {result.seconds:7.1f} s  {result.figures}")
        for problem in result.problems[:10]:
            progress(f"    {problem}")
        if result.problems and os.environ.get("LATTICE_TORTURE_LOGS"):
            for log in folder.glob("*.log"):
                progress(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}")
    return results
