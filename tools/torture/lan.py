"""Hosts with addresses of their own on one machine: network namespaces, joined by a hub that can cut, delay and lose.

The hub is a thread that passes Ethernet frames between TAP devices, one in each namespace. Needs root and /dev/net/tun;
`why_not()` says what is missing. Nothing but the hosts' namespaces is touched.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, TAP, NO_HEADER = 0x400454CA, 0x0002, 0x1000
FRAME = 65536


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)


def why_not():
    """Why there can be no Lan here; empty: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    name = f"lattice-probe-{os.getpid()}"
    made = ip("netns", "add", name)
    ip("netns", "del", name)
    return "" if made.returncode == 0 else f"network namespaces are not permitted: {made.stderr.strip()}"


class Host:
    def __init__(self, number):
        self.namespace = f"lattice-{os.getpid()}-{number}"
        self.address = f"10.213.7.{number + 1}"
        self.prefix = ["ip", "netns", "exec", self.namespace]
        self.cut, self.loss, self.delay = False, 0.0, 0.0
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        device = f"lt{os.getpid() % 100000}n{number}"
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH", device.encode(), TAP | NO_HEADER))
        for words in (("netns", "add", self.namespace), ("link", "set", device, "netns", self.namespace),
                      ("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", device),
                      ("-n", self.namespace, "link", "set", device, "up"),
                      ("-n", self.namespace, "link", "set", "lo", "up")):
            done = ip(*words)
            if done.returncode != 0:
                raise RuntimeError(f"ip {' '.join(map(str, words))}: {done.stderr.strip()}")

    def heal(self):
        self.cut, self.loss, self.delay = False, 0.0, 0.0

    def close(self):
        os.close(self.tap)
        ip("netns", "del", self.namespace)


class Lan:
    def __init__(self, hosts, seed=1):
        self.random = random.Random(seed)
        self.hosts = [Host(number) for number in range(hosts)]
        self.open = True
        self.thread = threading.Thread(target=self._pass_frames, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open = False
        self.thread.join()
        for host in self.hosts:
            host.close()

    def _pass_frames(self):
        waiting, count = [], 0  # frames on their way, by the time of their arrival
        by_tap = {host.tap: host for host in self.hosts}
        while self.open:
            patience = min(0.2, max(0.0, waiting[0][0] - time.monotonic())) if waiting else 0.2
            for tap in select.select(list(by_tap), [], [], patience)[0]:
                sender = by_tap[tap]
                try:
                    frame = os.read(tap, FRAME)
                except OSError:
                    continue
                for host in self.hosts:
                    lost = self.random.random() < max(sender.loss, host.loss)
                    if host is sender or sender.cut or host.cut or lost:
                        continue
                    count += 1
                    heapq.heappush(waiting, (time.monotonic() + max(sender.delay, host.delay), count, host.tap, frame))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, tap, frame = heapq.heappop(waiting)
                try:
                    os.write(tap, frame)
                except OSError:
                    pass  # a full queue loses frames, as a switch does
