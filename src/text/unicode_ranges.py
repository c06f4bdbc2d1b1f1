"""Writes unicode_ranges.inc: the letters and numbers of Unicode as sorted ranges of code points.

    python3 src/text/unicode_ranges.py > src/text/unicode_ranges.inc
"""

import unicodedata

from code_table import head, table


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


head("unicode_ranges.py")
table("CodeRange", "kLetters", ranges("L"))
table("CodeRange", "kNumbers", ranges("N"))
