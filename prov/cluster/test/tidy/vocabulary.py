"""One vocabulary: words that no name, comment or message may use, and names that may stand for one thing only.

A word is banned because an engineer of libfabric, MPI, QUIC or TCP would not search for it; the replacement is the
term of their manuals and RFCs (the glossary is in prov/cluster/README.md).
"""
import os
import re

from source import CPP_SUFFIXES, Violation

SOURCES = "prov/cluster/src/"
EXEMPT = "prov/cluster/test/tidy/"  # the rules name what they forbid

# pattern (whole words, any case) -> what to write instead
BANNED = {
    r"rooms?": "component, directory, capacity or free_bytes",
    r"doors?": "engine lock, entry point",
    r"suitors?|court(ed|ing|ship|s)?": "pending session, challenge",
    r"strangers?": "unknown source",
    r"keepers?": "keep-alive responder",
    r"attendants?|wards?": "progress thread, client",
    r"complaints?": "path error",
    r"shortcuts?|the long way": "EtherType path, IP path",
    r"insights?": "statistics",
    r"doom(ed|s)?": "failed, mark_failed",
    r"slumber|beds?|naps?": "sleep",
    r"in vain": "spurious, without effect",
    r"hurry|chores?": "what is due, and when",
    r"cargo|notebooks?": "packet, recording link",
    r"told": "notified, reported, encoded",
    r"who|whom|whoever|nobody|somebody|anybody|everybody": "the actor: the sender, the receiver, the application, the peer...",
    r"lest|thereby|whence|thence|herewith|hitherto": "plain words",
}
_WORDS = {re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", re.IGNORECASE): cure for pattern, cure in BANNED.items()}
_IN_NAMES = {re.compile(rf"(?:^|_)(?:{pattern})(?:_|$)"): cure for pattern, cure in BANNED.items() if " " not in pattern}
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_TYPE = re.compile(r"^[ \t]*(?:template\s*<[^;{]*>\s*)?(?:class|struct|union|enum(?:\s+class)?)\s+(?:\[\[\w+\]\]\s*)?"
                   r"(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{", re.MULTILINE)


def check(tree):
    yield from check_words(tree)
    yield from check_types(tree)
    yield from check_files(tree)


def check_words(tree):
    for file in tree.files:
        if file.path.startswith(EXEMPT) or not (file.suffix in CPP_SUFFIXES or file.is_script):
            continue
        for number, line in enumerate(file.lines, 1):
            for pattern, cure in _WORDS.items():
                if match := pattern.search(line):
                    yield Violation(file.path, number, "vocabulary", f"'{match.group(0)}'", f"write {cure}")
            for name in _NAME.findall(line):
                words = _CAMEL.sub("_", name).lower()
                if "_" not in words:
                    continue  # a single word was looked at above
                for pattern, cure in _IN_NAMES.items():
                    if pattern.search(words):
                        yield Violation(file.path, number, "vocabulary", f"the name '{name}'", f"write {cure}")


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
