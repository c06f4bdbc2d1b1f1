"""PTX text to a list of instructions."""

import re
from dataclasses import dataclass

from ptx.memory import Fault

_SKIPPED = (".reg", ".loc", ".file", ".section", ".pragma", ".shared", ".local")


@dataclass(frozen=True)
class Instruction:
    guard: str  # the predicate register, or ""
    inverted: bool
    parts: tuple  # "ld.global.v4.b32" as its parts
    args: tuple


@dataclass(frozen=True)
class Program:
    params: list
    threads: int
    code: list
    labels: dict


def parse(text, entry):
    body = text[text.index(".entry " + entry):]
    params = re.findall(r"\.param\s+\.\w+[^,)]*?(\w+_param_\d+)", body[:body.index("{")])
    threads = int(re.search(r"\.(?:req|max)ntid\s+(\d+)", body)[1])
    code, labels = [], {}
    for line in body[body.index("{") + 1:].split("\n"):
        line = re.sub(r"//.*", "", line).strip()
        if line == "}":
            break
        for part in line.split(";"):
            part = _without_scope(part)
            while label := re.match(r"([$\w]+):\s*", part):
                labels[label[1]] = len(code)
                part = part[label.end():]
            if part and not part.startswith(_SKIPPED):
                code.append(_instruction(part))
    return Program(params, threads, code, labels)


def _without_scope(part):
    """Inline assembly has braces of its own, on one line."""
    part = part.strip()
    if part.count("{") > part.count("}"):
        part = part.removeprefix("{").strip()
    if part.count("}") > part.count("{"):
        part = part.rstrip("} ")
    return part


def _instruction(part):
    match = re.match(r"(?:@(!?)(%p\w+)\s+)?([a-z][\w.:]*)\s*(.*)", part)
    if not match:
        raise Fault("cannot parse: " + part)
    args = tuple(x.strip() for x in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", match[4]))
    return Instruction(match[2] or "", match[1] == "!", tuple(match[3].replace("::", ".").split(".")), args)


def listed(arg):
    """The registers of "{a, b}", or of "a"."""
    return [x.strip() for x in arg.strip("{} ").split(",")]


def address_of(arg):
    """Base and offset of "[ base + offset ]"."""
    match = re.fullmatch(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\w+))?\s*\]", arg)
    if not match:
        raise Fault("cannot parse the address " + arg)
    return match[1], int(match[2], 0) if match[2] else 0
