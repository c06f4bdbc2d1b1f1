"""What an attack is, and the list of all."""

import random
import resource
import threading
import time
from dataclasses import dataclass, field

from torture import proc, wire

ATTACKS = {}


class Broken(Exception):
    """A promise of the server did not hold."""


class Skipped(Exception):
    """The attack cannot be made here; the message says why."""


@dataclass
class Attack:
    name: str
    promise: str
    run: object                   # run(scene); raises Broken
    memory_mib: int               # bound on what the server takes beyond what it had at the start, at any moment
    after_mib: int                # the same a few seconds after the attack
    wait_seconds: float           # the correct client is served at least so often; 0: it does not run
    model: str = "memory"
    args: tuple = ()              # of the server
    where_known: dict = field(default_factory=dict)  # more of them, {option: value}, for servers that have the option
    key: str | None = None
    long_only: bool = False       # not part of --quick
    own_servers: bool = False     # the attack starts what it needs with scene.start
    extra: dict = field(default_factory=dict)  # limits and user of the server: see server.Server


def attack(name, promise, memory_mib=64, after_mib=None, wait_seconds=10.0, **options):
    """Registers a function as an attack."""
    def register(run):
        after = memory_mib if after_mib is None else after_mib
        ATTACKS[name] = Attack(name, promise, run, memory_mib, after, wait_seconds, **options)
        return run
    return register


class Scene:
    """What an attack works with: a server, random numbers, and connections that are closed behind it."""

    def __init__(self, attack, stage, seed, quick, seconds):
        self.attack, self.stage, self.quick, self.seconds = attack, stage, quick, seconds
        self.random = random.Random(f"{seed} {attack.name}")
        self.server, self.figures, self.links = None, {}, []

    def choose(self, quick, full):
        return quick if self.quick else full

    def scaled(self, seconds):
        """A bound on time, wider where a sanitizer makes the server slow."""
        return seconds * self.stage.program.time

    def start(self, **options):
        """A server of the attack's kind beside scene.server; the stage stops it."""
        return self.stage.start(self.attack, **options)

    def expected(self, prompts):
        """{prompt: greedy answer} of a server that nobody attacks."""
        return self.stage.answers(self.attack.model, prompts)

    def connect(self, **options):
        link = wire.connect(self.server.port, **options)
        self.links.append(link)
        return link

    def call(self, method, path, body=None, headers=(), seconds=60.0):
        """An answer, for which `seconds` are waited; longer where a sanitizer makes the server slow."""
        return self.server.call(method, path, body, headers, self.scaled(seconds))

    def metrics(self):
        figures = self.server.metrics()
        check(figures is not None, "/metrics does not answer")
        return figures

    def new_session(self, prompt=None):
        answer = self.call("POST", "/v1/sessions", {} if prompt is None else dict(prompt=prompt))
        check(answer.status == 201, f"a new session got {answer.status}: {answer.body[:200]!r}")
        return answer.json()["id"]

    def close(self):
        for link in self.links:
            link.close()
        self.links.clear()

    def check_cpu(self, seconds, during, server=None):
        """Runs during() on a thread; broken when the server computes longer than `seconds` before it is done."""
        pid = (server or self.server).pid
        bound, before = self.scaled(seconds), proc.cpu_seconds(pid)
        thread = threading.Thread(target=during, daemon=True)
        thread.start()
        while True:
            thread.join(0.02)
            spent = proc.cpu_seconds(pid) - before
            check(spent <= bound, f"{spent:.1f} s of computing, more than {bound:g}")
            if not thread.is_alive():
                return spent


def check(condition, message):
    if not condition:
        raise Broken(message)


def check_all(cases, judge, seconds=60.0):
    """Runs judge(case) for all {title: case} at the same time; broken with every complaint that one of them returns."""
    complaints = together([lambda case=case: judge(case) for case in cases.values()], seconds)
    found = [f"{title}: {complaint}" for title, complaint in zip(cases, complaints) if complaint]
    check(not found, f"{len(found)} of {len(cases)}: {'; '.join(found)}")


def together(calls, seconds=60.0):
    """Runs functions on a thread each and returns their results, None for those that are not done in time.

    A connection that is refused or cut is no result; a promise that one of them found broken is raised here.
    """
    results, broken = [None] * len(calls), []

    def one(i, function):
        try:
            results[i] = function()
        except OSError:
            pass
        except Broken as found:
            broken.append(found)

    threads = [threading.Thread(target=one, args=(i, call), daemon=True) for i, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if broken:
        raise broken[0]
    return results


def raise_descriptor_limit(wanted=8192):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
