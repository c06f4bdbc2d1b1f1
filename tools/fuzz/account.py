"""The account of all fuzzing of this code: results/reliability/fuzzing.json, and the table that documents show."""

import json
import os
import time

FIELDS = {"executions": 0, "seconds": 0.0, "findings": 0}


class Account:
    def __init__(self, path, fresh=False):
        self.path = path
        known = json.loads(path.read_text()) if path.is_file() and not fresh else {}
        self.targets = known.get("targets", {})
        self.date = known.get("date")

    def of(self, name):
        return self.targets.setdefault(name, dict(FIELDS))

    def add(self, name, done, findings):
        entry = self.of(name)
        entry["executions"] += done.executions
        entry["seconds"] = round(entry["seconds"] + done.seconds, 1)
        entry["findings"] += findings
        entry["edges"] = max(entry.get("edges", 0), done.edges)
        self.write()

    def stored(self, name, inputs, size, edges, features):
        self.of(name).update(inputs=inputs, input_bytes=size, edges_stored=edges, features_stored=features)
        self.write()

    @property
    def executions(self):
        return sum(entry["executions"] for entry in self.targets.values())

    def write(self):
        """Whole or not at all: an interruption leaves the account as it was."""
        self.date = time.strftime("%Y-%m-%d", time.gmtime())
        content = {"date": self.date, "command": "./lattice fuzz", "executions": self.executions,
                   "seconds": round(sum(entry["seconds"] for entry in self.targets.values()), 1),
                   "findings": sum(entry["findings"] for entry in self.targets.values()),
                   "targets": {name: self.targets[name] for name in sorted(self.targets)}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(f".tmp{os.getpid()}")
        draft.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(draft, self.path)


def table(record):
    """As Markdown: a row for each target, and the sum."""
    rows = ["| target | executions | minutes | edges of the seeds | edges reached | stored inputs | findings |",
            "|---|---:|---:|---:|---:|---:|---:|"]
    for name, entry in sorted(record.targets.items()):
        rows.append(f"| `{name}` | {entry['executions']:,} | {entry['seconds'] / 60:,.0f} | {entry.get('edges_before', 0):,} | "
                    f"{entry.get('edges', 0):,} | {entry.get('inputs', 0)} | {entry['findings']} |")
    seconds, findings = (sum(entry[key] for entry in record.targets.values()) for key in ("seconds", "findings"))
    rows.append(f"| all | {record.executions:,} | {seconds / 60:,.0f} | | | | {findings} |")
    return "\n".join(rows)


def summary(record, found):
    return (f"{len(found)} found; {record.executions:,} executions in all sessions ({record.path})")
