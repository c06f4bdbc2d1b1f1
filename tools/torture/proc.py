"""What /proc says about a process."""

import os
import re

MIB = 1 << 20


def _status(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        found = re.search(rf"^{field}:\s+(\d+)", file.read(), re.MULTILINE)
    return int(found[1]) if found else 0


def resident_bytes(pid):
    return _status(pid, "VmRSS") * 1024


def peak_bytes(pid):
    """The most that was ever resident, as the kernel counted it."""
    return _status(pid, "VmHWM") * 1024


def virtual_bytes(pid):
    return _status(pid, "VmSize") * 1024


def threads(pid):
    return _status(pid, "Threads")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid):
    """User and system time of all threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processes_of(uid):
    """Threads that count against the process limit of a user."""
    count = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid == uid:
                count += threads(name)
        except OSError:
            continue
    return count
