"""Prints tables of code points as C++."""

import unicodedata


def head(script):
    print(f"// Made by {script} from Unicode {unicodedata.unidata_version}. Do not edit.")


def table(kind, name, rows):
    """rows: (first, last, ...), the code points in hexadecimal."""
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for first, last, *more in rows:
        entry = f" {{{', '.join([f'0x{first:X}', f'0x{last:X}', *map(str, more)])}}},"
        if len(line) + len(entry) > 110:
            print(line)
            line = "   "
        line += entry
    print(line)
    print("};")
