"""One name, one thing: no two types and no two files share a name, and a class has one source file."""
import os
import re

from source import Violation

SOURCES = "prov/cluster/src/"

_TYPE = re.compile(r"^[ \t]*(?:template\s*<[^;{]*>\s*)?(?:class|struct|union|enum(?:\s+class)?)\s+(?:\[\[\w+\]\]\s*)?"
                   r"(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{", re.MULTILINE)
_MEMBER_BODY = re.compile(r"^(?!\s)(?:[\w:<>*&,\s\[\]]+?[\s*&])?(\w+(?:::\w+)*)::~?\w+\s*\(", re.MULTILINE)


def check(tree):
    yield from check_types(tree)
    yield from check_files(tree)
    yield from check_bodies(tree)


def check_types(tree):
    """No two types share a name, nested ones apart: those are told apart by the type that holds them."""
    seen = {}
    for file in tree.cpp(SOURCES):
        for match in _TYPE.finditer(file.code):
            before = file.code[: match.start()]
            if _depth(before) > 0:
                continue
            name, line = match.group(1), file.code.count("\n", 0, match.start(1)) + 1
            if name in seen:
                yield Violation(file.path, line, "duplicate-type", f"'{name}' is also a type of {seen[name]}",
                                "name each by what tells it apart")
            seen.setdefault(name, f"{file.path}:{line}")


def _depth(code):
    """Open braces that are not those of a namespace."""
    stack = []
    for match in re.finditer(r"[{}]", code):
        if match.group(0) == "{":
            head = re.split(r"[;{}]", code[: match.start()])[-1]
            stack.append(bool(re.search(r'\bnamespace\b|extern ""', head)))
        elif stack:
            stack.pop()
    return stack.count(False)


def check_files(tree):
    seen = {}
    for file in tree.cpp(SOURCES):
        base = os.path.basename(file.path)
        if base in seen:
            yield Violation(file.path, 1, "duplicate-file", f"{seen[base]} has the same name",
                            "name each by what tells it apart")
        seen.setdefault(base, file.path)


def check_bodies(tree):
    """What does not fit into one .cc is another object with a state of its own."""
    defined = {(file.component(), match.group(1)) for file in tree.cpp(SOURCES) for match in _TYPE.finditer(file.code)}
    bodies = {}
    for file in tree.cpp(SOURCES):
        if file.suffix != ".cc":
            continue
        for match in _MEMBER_BODY.finditer(file.code):
            key = (file.component(), match.group(1))
            bodies.setdefault(key, {}).setdefault(file.path, file.code.count("\n", 0, match.start(1)) + 1)
    for key, places in sorted(bodies.items()):
        if key in defined and len(places) > 1:
            path, line = sorted(places.items())[1]
            yield Violation(path, line, "sliced-class", f"{key[1]} is defined in {', '.join(sorted(places))}",
                            "a class has one .cc; what does not fit is another object with a state of its own")
