"""Writes letter_case.inc: the simple lower-case and title-case mappings of Unicode as runs of code points.

    python3 src/text/letter_case.py > src/text/letter_case.inc
"""

from code_table import head, table


def runs(convert):
    """(first, last, step, delta): code points first, first + step, ..., last that map to themselves + delta."""
    found = []
    for code in range(0x110000):
        mapped = convert(chr(code))
        if len(mapped) != 1 or ord(mapped) == code:
            continue
        delta = ord(mapped) - code
        if found:
            first, last, step, previous = found[-1]
            gap = code - last
            if delta == previous and gap <= 2 and step in (0, gap):
                found[-1] = [first, code, gap, delta]
                continue
        found.append([code, code, 0, delta])
    return [(first, last, max(step, 1), delta) for first, last, step, delta in found]


head("letter_case.py")
table("CaseRun", "kToLower", runs(str.lower))
table("CaseRun", "kToTitle", runs(str.title))
