"""Writes letter_case.inc: the lower-case and title-case mappings of Unicode, and which characters decide over a
final sigma.

    python3 src/text/letter_case.py > src/text/letter_case.inc
"""

from code_table import head, table

CODES = [chr(code) for code in range(0x110000)]


def runs(convert):
    """(first, last, step, delta): code points first, first + step, ..., last that map to themselves + delta."""
    found = []
    for character in CODES:
        code, mapped = ord(character), convert(character)
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


def expansions(convert):
    """(code, first, second, third): code points that map to two or three others; third is 0 for two."""
    rows = []
    for character in CODES:
        mapped = [ord(c) for c in convert(character)]
        if len(mapped) > 1:
            rows.append((ord(character), *mapped, *[0] * (3 - len(mapped))))
    return rows


def ranges(holds):
    """(first, last): the code points for which `holds`."""
    found = []
    for character in CODES:
        code = ord(character)
        if not holds(character):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


# A capital sigma behind a cased character is final, and so is one behind such a character and case-ignorable ones.
# Python has no other way to ask for the two properties; a character with both counts as ignorable.
def cased(character):
    return (character + "\u03a3").lower().endswith("\u03c2")


def ignorable(character):
    return not cased(character) and ("A" + character + "\u03a3").lower().endswith("\u03c2")


head("letter_case.py")
table("CaseRun", "kToLower", runs(str.lower))
table("CaseRun", "kToTitle", runs(str.title))
table("CaseExpansion", "kLowerExpansions", expansions(str.lower))
table("CaseExpansion", "kTitleExpansions", expansions(str.title))
table("CodeRange", "kCased", ranges(cased))
table("CodeRange", "kCaseIgnorable", ranges(ignorable))
