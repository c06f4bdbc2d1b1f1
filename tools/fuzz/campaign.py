"""A session of fuzzing: slices of the targets in turn until the time is over or someone interrupts."""

import shutil
import signal
import sys
import threading
import time

from fuzz.findings import examine

# A target that has found this much rests: more of the same would only fill the disk.
MOST_FINDINGS = 20


class Campaign:
    def __init__(self, targets, corpora, record, slice_seconds):
        self.targets, self.corpora, self.record, self.slice_seconds = targets, corpora, record, slice_seconds
        self.lock = threading.Lock()
        self.running = {}  # by the name of the target; None until its process has started
        self.found = []
        self.stopping = False

    def run(self, seconds, jobs):
        """The findings. Interrupted (SIGINT, SIGTERM), the slices that run end early and are counted."""
        if seconds <= 0:
            return []
        deadline = time.monotonic() + seconds
        before = {number: signal.signal(number, self.stop) for number in (signal.SIGINT, signal.SIGTERM)}
        workers = [threading.Thread(target=self.work, args=(deadline,)) for _ in range(min(jobs, len(self.targets)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for number, handler in before.items():
            signal.signal(number, handler)
        return self.found

    def stop(self, *_):
        self.stopping = True
        for process in list(self.running.values()):
            if process is not None:
                process.send_signal(signal.SIGINT)

    def work(self, deadline):
        while not self.stopping and (left := deadline - time.monotonic()) >= 1:
            with self.lock:
                target = self.next_target()
                if target is None:
                    return
                self.running[target.name] = None
            try:
                self.slice(target, min(left, self.slice_seconds))
            finally:
                with self.lock:
                    del self.running[target.name]

    def next_target(self):
        """The one with the least time so far that does not run and has not found too much already."""
        free = [target for target in self.targets if target.name not in self.running
                and len(list(target.findings.iterdir())) < MOST_FINDINGS]
        return min(free, key=lambda target: self.record.of(target.name)["seconds"], default=None)

    def slice(self, target, seconds):
        seeds = self.corpora / target.name
        if "edges_before" not in self.record.of(target.name):
            edges, _ = target.coverage(seeds)
            with self.lock:
                self.record.of(target.name)["edges_before"] = edges

        def started(process):
            self.running[target.name] = process
            if self.stopping:
                process.send_signal(signal.SIGINT)

        done = target.fuzz(seconds, seeds, started)
        findings = [finding for path in done.artifacts if (finding := examine(target, path))]
        with self.lock:
            self.found += findings
            self.record.add(target.name, done, len(findings))
        print(f"{target.name:20} {done.executions:12,} executions in {done.seconds:4.0f} s, {done.edges:6} edges, "
              f"{len(findings)} found", file=sys.stderr, flush=True)
        for finding in findings:
            print(f"    {finding.kind}: {finding.summary}", file=sys.stderr, flush=True)
        if done.crashed and not done.artifacts:
            raise RuntimeError(f"{target.program} ended without an input to blame:\n{done.log[-2000:]}")


def clear(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
