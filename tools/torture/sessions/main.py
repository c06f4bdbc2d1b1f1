"""./lattice torture sessions: replicas, Redis and nginx on loopback are killed, paused, restarted and spoilt while sessions
are in use. Every session must go on bit-equal to one that was never disturbed, or give a clear error. Exit code: 0 when
that holds, 1 when not, 2 for wrong use.
"""

import argparse
import json
import tempfile
from pathlib import Path

from torture.sessions import faults


def main(runner, words):
    parser = argparse.ArgumentParser(prog="./lattice torture sessions", description=__doc__.partition(": ")[2],
                                     epilog="Example: ./lattice torture sessions --quick --only killed")
    parser.add_argument("--quick", action="store_true", help="8 sessions and few faults: about a minute")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (default 1)")
    parser.add_argument("--only", action="append", metavar="NAME", choices=sorted(faults.FAULTS),
                        help="this fault; may be repeated: " + ", ".join(faults.FAULTS))
    parser.add_argument("--program", type=Path, default=runner, help="the lattice-run to use")
    parser.add_argument("--json", action="store_true", help="results as JSON")
    options = parser.parse_args(words)
    if not options.program.is_file():
        parser.error(f"there is no program {options.program}; build it, or pass --program")
    with tempfile.TemporaryDirectory(prefix="lattice-torture-") as directory:
        results = faults.run(options.program, directory, options.seed, options.quick, options.only,
                             (lambda line: None) if options.json else lambda line: print(line, flush=True))
    if options.json:
        print(json.dumps([vars(result) for result in results], indent=1))
    return 1 if any(result.problems for result in results) else 0
