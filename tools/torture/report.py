"""What the program prints: a line for each attack as it ends, the reasons of those that broke, or JSON."""

import json
import sys
import textwrap

COLUMNS = "{:26} {:8} {:>9} {:>9} {:>8}"


def listing(attacks):
    lines = []
    for attack in attacks:
        head = f"{attack.name}{' (not with --quick)' if attack.long_only else ''}: at most {attack.memory_mib} MiB more"
        lines.append(head + "\n" + textwrap.indent(textwrap.fill(attack.promise, 110), "    "))
    return "\n".join(lines)


class Progress:
    def __init__(self, as_json):
        self.out = sys.stderr if as_json else sys.stdout
        self.as_json = as_json
        print(COLUMNS.format("attack", "promise", "peak MiB", "bound MiB", "seconds"), file=self.out, flush=True)

    def after(self, result):
        bound = result.start_mib + result.bound_mib
        memory = (f"{result.peak_mib:.0f}", f"{bound:.0f}") if result.start_mib else ("-", "-")
        print(COLUMNS.format(result.name, result.outcome, *memory, f"{result.seconds:.1f}"), file=self.out, flush=True)
        for reason in result.reasons:
            print(textwrap.indent(textwrap.shorten(reason, 400), "    "), file=self.out, flush=True)
        return result

    def finish(self, results, options, program):
        broken = [result.name for result in results if result.outcome == "BROKEN"]
        skipped = [result.name for result in results if result.outcome == "skipped"]
        kept = len(results) - len(broken) - len(skipped)
        if self.as_json:
            about = dict(torture="serve", program=str(program.path), sanitizer=program.sanitizer, seed=options.seed,
                         quick=options.quick, kept=kept, broken=broken, skipped=skipped)
            print(json.dumps(dict(about, attacks=[result.as_dict() for result in results]), indent=1))
        seconds = sum(result.seconds for result in results)
        print(f"{kept} promises kept, {len(broken)} broken, {len(skipped)} skipped in {seconds:.0f} s"
              + (f": {' '.join(broken)}" if broken else ""), file=self.out)
