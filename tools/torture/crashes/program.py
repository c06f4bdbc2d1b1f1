"""One start of a program under a fault of preload/write_faults.cc, and how many of its calls have been counted."""

import os
import resource
import signal
import struct
import subprocess
import time

PATIENCE = 600  # seconds for a program on a machine under load


class Start:
    """`fault` is the value of LATTICE_FAULT, or "". The calls that change files below `under` are counted."""

    def __init__(self, command, library, under, scratch, fault="", largest_file=None):
        self.counter = scratch / "calls"
        self.counter.write_bytes(bytes(8))
        self.stdout, self.stderr = scratch / "stdout", scratch / "stderr"
        variables = {"LD_PRELOAD": str(library), "LATTICE_FAULT_UNDER": str(under), "OMP_NUM_THREADS": "1",
                     "LATTICE_FAULT_COUNTER": str(self.counter)} | ({"LATTICE_FAULT": fault} if fault else {})

        def limit():
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        with open(self.stdout, "wb") as out, open(self.stderr, "wb") as err:
            self.process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                            env=os.environ | variables, start_new_session=True, preexec_fn=limit)

    def calls(self):
        return struct.unpack("q", self.counter.read_bytes())[0]

    def await_calls(self, count):
        """False when the program has ended before."""
        until = time.monotonic() + PATIENCE
        while self.calls() < count:
            if self.process.poll() is not None:
                return self.calls() >= count
            if time.monotonic() > until:
                return False
            time.sleep(0.001)
        return True

    def kill(self):
        self.signal(signal.SIGKILL)

    def signal(self, number):
        """To the program and what it has started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def end(self):
        """Waits, and returns the exit code; negative: the signal that ended it. Leaves no process behind."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        self.process.wait()
        self._await_group()
        return code

    def _await_group(self):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.002)

    def said(self):
        return "\n".join(file.read_text(errors="replace") for file in (self.stdout, self.stderr))
