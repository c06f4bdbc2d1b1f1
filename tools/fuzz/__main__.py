"""./lattice fuzz: what strangers can send to the program, and random problems for the kernels, for as long as you like.

Runs the libFuzzer targets of fuzz/ in turn, each for a slice of time, the one with the least time so far first. Whatever
ends it, the next call goes on: inputs that reach new code are kept in build/fuzz, and the account of executions, time and
coverage in results/reliability/fuzzing.json is written after every slice. When the time is over, a small set of inputs that
reaches the same code is stored in fuzz/corpus. Crashes, leaks, inputs that take more than a second of computing, and
allocations that the size of an input does not justify are findings: they are kept in build/fuzz/findings and shown with
a command that repeats them.

With --differential, random problems go through every instruction set of this machine and a float64 reference instead
(docs/fuzzing.md). Exit code: 0 when nothing was found, 1 when something was, 2 for wrong use.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from fuzz import account, campaign, corpus, differential  # noqa: E402  (needs the path)
from fuzz.target import read_targets  # noqa: E402

ACCOUNT = ROOT / "results" / "reliability" / "fuzzing.json"
DIFFERENTIAL = ROOT / "results" / "reliability" / "differential.json"


def arguments():
    parser = argparse.ArgumentParser(prog="./lattice fuzz", description=__doc__.partition("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Example: ./lattice fuzz --minutes 10 --only gguf")
    parser.add_argument("--minutes", type=float, default=10, help="how long, over all targets (default 10; 0: only store)")
    parser.add_argument("--only", action="append", metavar="TARGET", help="this target; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at the same time (default 1)")
    parser.add_argument("--slice", type=float, default=60, metavar="SECONDS", help="of one target in turn (default 60)")
    parser.add_argument("--no-store", action="store_true", help="leave fuzz/corpus as it is")
    parser.add_argument("--reset", action="store_true", help="begin a new account: what was counted is for older code")
    parser.add_argument("--table", action="store_true", help="print the account as the table of docs/fuzzing.md; run nothing")
    parser.add_argument("--differential", action="store_true", help="random problems through every instruction set")
    parser.add_argument("--problems", type=int, default=10_000, help="with --differential: how many more (default 10,000)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "fuzz", help=argparse.SUPPRESS)
    parser.add_argument("--corpus", type=Path, default=ROOT / "fuzz" / "corpus", help=argparse.SUPPRESS)
    parser.add_argument("--account", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "bin" / "lattice-differential",
                        help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.minutes < 0 or options.jobs < 1 or options.slice <= 0 or options.problems < 1:
        parser.error("--minutes must not be negative, and --jobs, --slice and --problems must be above 0")
    if options.account is None:
        options.account = DIFFERENTIAL if options.differential else ACCOUNT
    return parser, options


def chosen_targets(parser, options):
    if not (options.build / "fuzz" / "targets.json").is_file():
        parser.error(f"there are no fuzz targets in {options.build}; ./lattice fuzz builds them")
    targets = read_targets(options.build)
    unknown = set(options.only or []) - targets.keys()
    if unknown:
        parser.error(f"no target named {', '.join(sorted(unknown))}; there are: {', '.join(sorted(targets))}")
    return [target for name, target in sorted(targets.items()) if not options.only or name in options.only]


def main():
    parser, options = arguments()
    if options.table:
        print(account.table(account.Account(options.account)))
        return 0
    if options.differential:
        return differential.run(options.program, options.problems, options.account)
    targets = chosen_targets(parser, options)
    record = account.Account(options.account, fresh=options.reset)
    found = campaign.Campaign(targets, options.corpus, record, options.slice).run(60 * options.minutes, options.jobs)
    if not options.no_store:
        for target in targets:
            corpus.store(target, options.corpus / target.name, record)
    for finding in found:
        print(f"found: {finding.kind} in {finding.target}: {finding.summary}\n    {finding.command}")
    print(account.summary(record, found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
