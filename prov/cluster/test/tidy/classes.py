"""Classes of the provider and its simulator are small and whole: at most 30 methods and 20 data members, one .cc.

EXCEPTIONS may only shrink: a class that has become smaller than its row must have its row lowered or removed.
"""
import re

from source import Violation

METHODS_MAX = 30
MEMBERS_MAX = 20
SOURCES = "prov/cluster/src/"
SIMULATOR = "prov/cluster/sim/"

# class -> (methods, members, why). Both numbers are what it has now.
EXCEPTIONS = {
    "wire::FrameView": (7, 17, "one member for each field and block of a frame"),
    "reliability::FrameSize": (16, 17, "the sizes that a search knows, and one member for each thing known of the probe outstanding"),
    "sim::WorkloadPlan": (0, 34, "one member for each thing that a run draws"),
    "sim::Message": (0, 24, "one member for each property of a message, and for each thing that the oracle sees of it"),
    "sim::Oracle": (26, 8, "one method for each thing that a host shows it"),
    "api::Endpoint": (26, 15, "one method for each call of an endpoint"),
    "protocol::Matcher": (28, 9, "what becomes of a message and of a receive, in each state of the other"),
    "sim::RmaOperation": (0, 17, "the same of a remote read or write"),
}

_CLASS = re.compile(r"\b(class|struct)\s+(?:alignas\([^)]*\)\s*)?([\w:]+)\s*(?:final\s*)?(?::(?!:)[^;{]*)?\{")
_NO_MEMBER = re.compile(r"^(using|friend|typedef|static|enum|class|struct|union|template\s*<[^;]*>\s*(class|struct|friend))\b")


def check(tree):
    classes, bodies = {}, {}
    for file in tree.cpp(SOURCES) + tree.cpp(SIMULATOR):
        component = file.component() or "sim"
        for name, line, methods, members in classes_of(file.code):
            key = f"{component}::{name}"
            if key in classes and classes[key][1] >= methods:
                continue
            classes[key] = (f"{file.path}", methods, members, line)
        if file.suffix == ".cc":
            for match in re.finditer(r"^(?!\s)(?:[\w:<>*&,\s\[\]]+?[\s*&])?(\w+(?:::\w+)*)::~?\w+\s*\(", file.code, re.MULTILINE):
                key = (component, match.group(1))
                bodies.setdefault(key, {}).setdefault(file.path, file.code.count("\n", 0, match.start(1)) + 1)
    for key, (path, methods, members, line) in sorted(classes.items()):
        yield from _check_size(key, path, methods, members, line)
    for (component, name), places in sorted(bodies.items()):
        if len(places) > 1 and f"{component}::{name}" in classes:
            path, line = sorted(places.items())[1]
            yield Violation(path, line, "sliced-class", f"{name} is defined in {', '.join(sorted(places))}",
                            "a class has one .cc; what does not fit is another object with a state of its own")
    for key in EXCEPTIONS:
        if tree.find(SOURCES + "base/status.h") and key not in classes:
            yield Violation("prov/cluster/test/tidy/classes.py", 1, "class-size", f"there is no class {key}",
                            "take its row out of EXCEPTIONS")


def _check_size(key, path, methods, members, line):
    allowed = EXCEPTIONS.get(key, (METHODS_MAX, MEMBERS_MAX))
    if methods > max(allowed[0], METHODS_MAX) or members > max(allowed[1], MEMBERS_MAX):
        yield Violation(path, line, "class-size", f"{key} has {methods} methods and {members} data members, at most "
                        f"{allowed[0]} and {allowed[1]} are allowed", "take an object with a state of its own out of it")
    elif key in EXCEPTIONS and (methods < allowed[0] or members < allowed[1]):
        yield Violation(path, line, "class-size", f"{key} has {methods} methods and {members} members now",
                        "lower its row in EXCEPTIONS, or remove it")


def classes_of(code):
    """(name, line, methods, data members) of each class defined in the text. Constructors, destructors, operators and
    what is deleted or defaulted do not count, nor do static constants."""
    for match in _CLASS.finditer(code):
        if re.search(r"\benum\s+$", code[: match.start()]):
            continue
        name = match.group(2)
        methods = members = 0
        for statement, has_body in _statements(code, match.end()):
            text = re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", statement).strip()
            text = re.sub(r"\[\[\w+\]\]", "", text).strip()
            if not text:
                continue
            plain = text
            while re.search(r"<[^<>()]*(\([^()]*\))?[^<>()]*>", plain):
                plain = re.sub(r"<[^<>()]*(\([^()]*\))?[^<>()]*>", "", plain)
            head = re.split(r"[={]", plain)[0]
            if "(" in head and not re.match(r"(alignas|decltype)\s*\(", head):
                called = re.search(r"(~?[\w]+|operator[^(]*)\s*\(", head).group(1)
                special = called.startswith(("operator", "~")) or called == name.split("::")[-1]
                removed = re.search(r"=\s*(delete|default)\s*$", text)
                friend = re.match(r"friend\b", text)
                if not special and not removed and not friend and called not in ("static_assert", "assert"):
                    methods += 1
            elif not _NO_MEMBER.match(text) and (not has_body or "{" in text):
                members += text.count(",") + 1 if "=" not in text and "{" not in text and "<" not in text else 1
        yield name, code.count("\n", 0, match.start()) + 1, methods, members


def _statements(code, start):
    """(text, ended with a body) of what stands directly in the braces that open before `start`."""
    depth, begin, opened = 1, start, None
    at = start
    while depth:
        match = re.compile(r"[{};]").search(code, at)
        if match is None:
            return
        at = match.end()
        sign = match.group(0)
        if sign == "{":
            depth += 1
            if depth == 2:
                opened = match.start()
        elif sign == "}":
            depth -= 1
            if depth == 1:
                head = code[begin:opened]
                after = code[at:].lstrip()[:1]
                initialiser = after in (";", ",")
                type_or_function = re.search(r"\b(class|struct|union|enum)\b", head) or "(" in head
                if not initialiser or (type_or_function and not re.search(r"[=]", head)):
                    if "(" in head and after == "," or (after == "{"):
                        continue
                    yield head, True
                    begin = at + (len(code[at:]) - len(code[at:].lstrip()) + 1 if after == ";" else 0)
                    at = begin
        elif depth == 1:
            yield code[begin:match.start()], False
            begin = at
