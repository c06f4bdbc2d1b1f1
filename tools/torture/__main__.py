"""./lattice torture serve: hostile clients against a server, and the promises that must hold meanwhile.

Starts `lattice-run serve` on loopback with small untrained models, one fresh server for each attack, and attacks it.
A correct client asks all along, and its answers are compared bit for bit with those of a server that nobody attacks.
docs/reliability.md lists the attacks with their promises and bounds. Exit code: 0 when every promise holds, 1 when one is
broken, 2 for wrong use.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torture import attacks, ranks, report  # noqa: E402, F401  (needs the path; importing the attacks registers them)
from torture.crashes import main as crashes  # noqa: E402
from torture.crashes.subjects import SUBJECTS  # noqa: E402
from torture.registry import ATTACKS, raise_descriptor_limit  # noqa: E402
from torture.server import Program  # noqa: E402
from torture.sessions import main as sessions  # noqa: E402
from torture.stage import Stage  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "build" / "release" / "bin" / "lattice-run"


def arguments():
    parser = argparse.ArgumentParser(prog="./lattice torture", description=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Example: ./lattice torture serve --quick --only smuggling",
                                     usage="./lattice torture serve [options]")
    parser.add_argument("target", choices=["serve"], help="what is attacked (the others have options of their own)")
    parser.add_argument("--quick", action="store_true", help="small numbers and no soak: a minute or two")
    parser.add_argument("--minutes", type=float, default=30, help="of the soak (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (default 1)")
    parser.add_argument("--only", action="append", metavar="NAME", choices=sorted(ATTACKS),
                        help="this attack; may be repeated")
    parser.add_argument("--program", type=Path, default=RUNNER,
                        help="a lattice-run to attack, e.g. build/asan/bin/lattice-run")
    parser.add_argument("--list", action="store_true", help="list the attacks with their promises")
    parser.add_argument("--json", action="store_true", help="results as JSON")
    options = parser.parse_args()
    if options.minutes <= 0:
        parser.error("--minutes must be above 0")
    if not options.list and not options.program.is_file():
        parser.error(f"there is no program {options.program}; build it, or pass --program")
    return options


def main():
    if sys.argv[1:2] == ["sessions"]:
        return sessions.main(RUNNER, sys.argv[2:])
    if sys.argv[1:2] == ["ranks"]:
        return ranks.main(sys.argv[2:])
    if sys.argv[1:2] and sys.argv[1] in SUBJECTS:
        return crashes.main(sys.argv[1], sys.argv[2:])
    options = arguments()
    chosen = [ATTACKS[name] for name in options.only] if options.only else [
        attack for attack in ATTACKS.values() if not (options.quick and attack.long_only)]
    if options.list:
        print(report.listing(chosen))
        return 0
    raise_descriptor_limit()
    progress = report.Progress(options.json)
    with Stage(Program(options.program), options.seed, options.quick, 60 * options.minutes) as stage:
        results = [progress.after(stage.run(attack)) for attack in chosen]
    progress.finish(results, options, stage.program)
    return 1 if any(result.outcome == "BROKEN" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
