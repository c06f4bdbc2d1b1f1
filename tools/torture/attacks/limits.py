"""A machine that has no more to give: threads, descriptors, memory."""

import os
import resource
import time
from functools import partial

from torture import proc, wire
from torture.registry import Broken, Skipped, attack, check, together
from torture.stage import PROMPTS, answer_of

CONNECTIONS = 400
ROOM_MIB = (0, 1, 4, 16, 64, 160)
LONELY_USER = 64321  # no other process counts against its limits


def idle_connections(scene, server, count):
    """Opens connections that stay idle; those that are refused are no failure."""
    links = []
    for _ in range(count):
        try:
            links.append(wire.connect(server.port, timeout=2))
        except OSError:
            continue
    scene.links += links
    time.sleep(0.5)
    return links


def serves(scene, server, seconds=10.0):
    """Whether a correct client gets its answer, with room for the server to recover."""
    deadline = time.monotonic() + scene.scaled(seconds)
    expected = scene.expected(PROMPTS[:1])
    while server.alive() and time.monotonic() < deadline:
        try:
            if answer_of(server, PROMPTS[0]) == expected[PROMPTS[0]]:
                return True
        except (Broken, OSError):  # refused for now
            time.sleep(0.1)
    return False


def goes_on(scene, server, what):
    """The server outlives the shortage, serves when it is over, and ends in order."""
    check(server.alive(), f"{what}: the server ended with {server.process.poll()}: {server.errors()[-200:]}")
    scene.close()
    check(serves(scene, server), f"{what}: no answer when the connections were gone; alive: {server.alive()}")
    check(server.stop() is not None, f"{what}: SIGTERM did not end it in time")
    check(server.process.returncode == 0 and not server.report(), f"{what}: it ended with {server.process.returncode}: "
          f"{server.errors()[-200:]}")


@attack("process-limit", f"with room for 128 threads, {CONNECTIONS} idle connections are taken or refused, and the "
        "server goes on", own_servers=True)
def process_limit(scene):
    root = os.geteuid() == 0
    room = 128 + (0 if root else proc.processes_of(os.geteuid()))
    try:
        server = scene.start(limits={resource.RLIMIT_NPROC: room}, uid=LONELY_USER if root else None)
    except PermissionError as error:
        raise Skipped(f"another user cannot run the program: {error}") from None
    idle_connections(scene, server, CONNECTIONS)
    goes_on(scene, server, "no more threads")


@attack("descriptor-limit", f"with 64 descriptors, {CONNECTIONS} idle connections are taken or refused without "
        "spinning, and the server goes on", own_servers=True)
def descriptor_limit(scene):
    server = scene.start(limits={resource.RLIMIT_NOFILE: 64})
    idle_connections(scene, server, CONNECTIONS)
    before, began = proc.cpu_seconds(server.pid), time.monotonic()
    time.sleep(1.0)
    share = (proc.cpu_seconds(server.pid) - before) / (time.monotonic() - began)
    check(share < 0.5, f"it computes {100 * share:.0f} % of the time while it waits for a descriptor")
    goes_on(scene, server, "no more descriptors")


@attack("memory-limit", "where memory cannot be had, requests are refused and the server goes on", memory_mib=512,
        own_servers=True)
def memory_limit(scene):
    if scene.stage.program.sanitizer:
        raise Skipped("sanitizers need address space without a limit")
    server = scene.start()
    for room in ROOM_MIB:
        check(serves(scene, server), f"no answer before {room} MiB were left")
        # Of address space: stacks and arenas of threads count against it as well.
        limit = proc.virtual_bytes(server.pid) + room * proc.MIB
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        together([partial(burden, server, i) for i in range(scene.choose(12, 48))], scene.scaled(20))
        ended = f"with {room} MiB left the server ended with {server.process.poll()}: {server.errors()[-200:]}"
        check(server.alive(), ended)
        resource.prlimit(server.pid, resource.RLIMIT_AS, unlimited)
    goes_on(scene, server, "memory is back")


def burden(server, i):
    """One request that needs a good deal of memory, each of another kind."""
    kinds = [("/tokenize", dict(text="x" * (6 << 20))),
             ("/v1/completions", dict(prompt=f"prompt {i} " * 500, n=128, max_tokens=8, logprobs=20)),
             ("/v1/completions", dict(prompt=f"stream {i}", n=64, max_tokens=200, stream=True)),
             ("/v1/sessions", dict(prompt=f"session {i} " * 2000))]
    path, body = kinds[i % len(kinds)]
    server.call("POST", path, body, seconds=10)
