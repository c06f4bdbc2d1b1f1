"""Runs attacks one after the other, each on a fresh server, and judges what all of them have in common:

the server lives, its memory stays under the attack's bound, a correct client gets right answers all along and
afterwards, nothing is left running, and SIGTERM ends the server in time and without a sanitizer's report.
"""

import shutil
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torture import proc, wire
from torture.models import write_model
from torture.registry import Broken, Scene, Skipped, check
from torture.server import Server
from torture.witness import WitnessProcess, question

PROMPTS = [f"{word} number {i} of the prompts" for i in range(8) for word in ("first", "second", "third")]
SETTLE_SECONDS = 5.0
# A server far beyond its bound is killed before it takes the machine's memory.
CEILING_FACTOR = 2


@dataclass
class Result:
    name: str
    promise: str
    outcome: str = "kept"  # or "BROKEN", "skipped"
    reasons: list = field(default_factory=list)
    seconds: float = 0.0
    start_mib: float = 0.0
    peak_mib: float = 0.0
    bound_mib: float = 0.0
    figures: dict = field(default_factory=dict)

    as_dict = asdict


class Stage:
    """Directory, models and answers of quiet servers that the attacks share."""

    def __init__(self, program, seed, quick, seconds):
        self.program, self.seed, self.quick, self.seconds = program, seed, quick, seconds
        self.directory = Path(tempfile.mkdtemp(prefix="lattice-torture-"))
        self.directory.chmod(0o755)  # servers may run as another user
        self._models, self._answers, self._servers = {}, {}, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stop_all()
        shutil.rmtree(self.directory, ignore_errors=True)

    def model(self, kind):
        if kind not in self._models:
            self._models[kind] = write_model(kind, self.directory / kind)
        return self._models[kind]

    def use_model(self, kind, path):
        """A checkpoint that an attack has made."""
        self._models[kind] = path

    def start(self, attack, **options):
        """A server with the attack's options, each of which may be replaced."""
        ceiling = options.pop("ceiling", 0)
        where = Path(tempfile.mkdtemp(prefix="server-", dir=self.directory))  # a server may refuse to start
        more = [word for item in attack.where_known.items() if self.program.has(item[0]) for word in item]
        given = dict(args=(*attack.args, *more), key=attack.key, **attack.extra)
        given.update(options)
        server = Server(self.program, self.model(given.pop("model", attack.model)), where, ceiling=ceiling, **given)
        self._servers.append(server)
        return server

    def _stop_all(self):
        for server in self._servers:
            server.kill()

    def answers(self, model, prompts):
        """{prompt: greedy answer} of a server without a cache that does nothing else."""
        known = self._answers.setdefault(model, {})
        missing = [prompt for prompt in prompts if prompt not in known]
        if missing:
            where = self.directory / f"quiet-{model}-{len(known)}"
            where.mkdir()
            quiet = Server(self.program, self.model(model), where, args=("--cache-mib", 0))
            try:
                for prompt in missing:
                    known[prompt] = answer_of(quiet, prompt)
            finally:
                quiet.kill()
        return {prompt: known[prompt] for prompt in prompts}

    def run(self, attack):
        result = Result(attack.name, attack.promise, bound_mib=attack.memory_mib * self.program.memory)
        began = time.monotonic()
        scene = Scene(attack, self, self.seed, self.quick, self.seconds)
        before = len(self._servers)
        try:
            self._guard(result, *((attack.run, scene) if attack.own_servers else (self._attack, scene, result)))
            for server in self._servers[before:]:
                self._judge_end(server, result)
        except Skipped as reason:
            result.outcome, result.reasons = "skipped", [str(reason)]
        finally:
            scene.close()
            self._stop_all()
        if result.reasons and result.outcome != "skipped":
            result.outcome = "BROKEN"
        result.seconds, result.figures = time.monotonic() - began, scene.figures
        return result

    def _guard(self, result, function, *args):
        """Adds to the reasons what a check found, or that the server does not even answer."""
        try:
            function(*args)
        except Broken as broken:
            result.reasons.append(str(broken))
        except OSError as error:
            result.reasons.append(f"no connection: {error}")
        except (Skipped, KeyboardInterrupt):
            raise
        except Exception as error:  # an answer that the attack did not expect must not hide the other attacks
            place = traceback.extract_tb(error.__traceback__)[-1]
            result.reasons.append(f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}")

    def _attack(self, scene, result):
        attack, expected = scene.attack, self.answers(scene.attack.model, PROMPTS)
        scene.server = server = self.start(attack)
        for prompt in PROMPTS:
            check(answer_of(server, prompt) == expected[prompt], f"before the attack {prompt!r} got another answer")
        server.start_bytes = proc.resident_bytes(server.pid)
        server.ceiling = server.start_bytes + CEILING_FACTOR * result.bound_mib * proc.MIB
        witness = WitnessProcess(server.port, attack.key, expected) if attack.wait_seconds else None
        self._guard(result, attack.run, scene)
        scene.close()
        if witness:
            self._guard(result, self._judge_witness, scene, witness.finish())
        if server.alive():
            self._guard(result, self._judge_after, scene, expected)
            self._guard(result, self._judge_stop, server)

    def _judge_witness(self, scene, seen):
        scene.figures.update(served=seen["served"], refused=seen["refused"],
                             longest_wait=round(seen["longest_wait"], 3))
        check(not seen["wrong"], f"a correct client got a wrong answer: {seen['wrong'][:1]}")
        check(not seen["failed"], f"a correct client got no answer: {seen['failed'][:1]}")
        wait = scene.scaled(scene.attack.wait_seconds)
        check(seen["longest_wait"] <= wait,
              f"a correct client was not served for {seen['longest_wait']:.1f} s (bound {wait:g}; served "
              f"{seen['served']}, refused {seen['refused']})")

    def _judge_after(self, scene, expected):
        server, attack, start = scene.server, scene.attack, scene.server.start_bytes
        check(server.wait_for(lambda m: m["lattice_running_sequences"] == m["lattice_waiting_sequences"] == 0,
                              SETTLE_SECONDS), "texts of clients that have gone still run")
        for prompt in PROMPTS[:4]:
            check(answer_of(server, prompt) == expected[prompt], f"after the attack {prompt!r} got another answer")
        deadline = time.monotonic() + self.program.time * SETTLE_SECONDS
        bound = start + attack.after_mib * self.program.memory * proc.MIB
        while proc.resident_bytes(server.pid) > bound and time.monotonic() < deadline:
            time.sleep(0.05)
        left = (proc.resident_bytes(server.pid) - start) / proc.MIB
        check(left <= attack.after_mib * self.program.memory,
              f"{left:.0f} MiB remain after the attack (bound {attack.after_mib * self.program.memory})")

    def _judge_stop(self, server):
        check(server.stop() is not None, "SIGTERM did not end it within the grace time and 2 s")

    def _judge_end(self, server, result):
        """What the process took and how it ended; one that still runs is one that the attack did not end."""
        result.start_mib, result.peak_mib = server.start_bytes / proc.MIB, server.peak / proc.MIB
        more = (server.peak - server.start_bytes) / proc.MIB
        if server.killed_at:
            result.reasons.append(f"took {more:.0f} MiB more and was killed")
        elif more > result.bound_mib:
            result.reasons.append(f"took {more:.0f} MiB more (bound {result.bound_mib})")
        elif server.process.poll() not in (None, 0) and not server.killed:
            result.reasons.append(f"the server ended with {server.process.returncode}: {server.errors()[-300:]}")
        if server.report():
            result.reasons.append(server.report())


def answer_of(server, prompt):
    """The greedy answer, or a Broken that says what came instead."""
    answer = server.call("POST", "/v1/completions", question(prompt), source=wire.SERVER)
    check(answer.status == 200 and answer.complete, f"{prompt!r} got {answer.status}: {answer.body[:200]!r}")
    return answer.json()["choices"][0]["text"]
