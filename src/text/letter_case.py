"""Writes letter_case.inc: the simple lower-case and title-case mappings of Unicode as runs of code points.

    python3 src/text/letter_case.py > src/text/letter_case.inc
"""

import unicodedata


def runs(convert):
    """[first, last, step, delta]: code points first, first + step, ..., last that map to themselves + delta."""
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
    return found


def table(name, found):
    print(f"constexpr CaseRun {name}[] = {{")
    line = "   "
    for first, last, step, delta in found:
        entry = f" {{0x{first:X}, 0x{last:X}, {max(step, 1)}, {delta}}},"
        if len(line) + len(entry) > 110:
            print(line)
            line = "   "
        line += entry
    print(line)
    print("};")


print(f"// Made by letter_case.py from Unicode {unicodedata.unidata_version}. Do not edit.")
table("kToLower", runs(str.lower))
table("kToTitle", runs(str.title))
