"""Writes unicode_ranges.inc: the letters and numbers of Unicode as sorted ranges of code points.

    python3 src/text/unicode_ranges.py > src/text/unicode_ranges.inc
"""

import unicodedata


def ranges(initial):
    """Maximal ranges [first, last] of the code points whose general category starts with `initial`."""
    found = []
    for code in range(0x110000):
        if unicodedata.category(chr(code))[0] != initial:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, found):
    print(f"constexpr CodeRange {name}[] = {{")
    line = "   "
    for first, last in found:
        entry = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(entry) > 110:
            print(line)
            line = "   "
        line += entry
    print(line)
    print("};")


print(f"// Made by unicode_ranges.py from Unicode {unicodedata.unidata_version}. Do not edit.")
table("kLetters", ranges("L"))
table("kNumbers", ranges("N"))
