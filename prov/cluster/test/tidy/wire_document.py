"""The specification of the wire and the code say the same: layouts, flags, kinds, segments, and every number."""
import re

from source import Violation

DOCUMENT = "prov/cluster/docs/protocol.md"
SOURCES = "prov/cluster/src/"
OPTIONS = SOURCES + "provider/options.def"
LAYOUTS = {"1.1": ("wire/frame.h", "FrameHeader"), "1.3": ("wire/ack.h", "AckBlock"), "2.1": ("wire/opening.h", "OpeningBlock"),
           "2.9": ("wire/opening.h", "VerbsBlock")}
NUMBERS = "8"
# Every number in these is part of how a session behaves, so it must be in the table.
COMPLETE = r"prov/cluster/src/((?:reliability|multipath)/\w+\.h|protocol/pull_budget\.h|protocol/channel\.h)"
PRIVATE = {"kWordBits", "kSparesMax", "kHeadroom", "kPayloadPiecesMax", "kFramesMax", "kReferenceMin", "kDoublings"}  # memory, or derived
TYPES = {"Le16": 2, "Le32": 4, "Le64": 8, "std::uint8_t": 1}
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "KB": 1024, "MB": 1024**2}
CONSTANT = re.compile(r"constexpr\s+[\w:]+\s+(k\w+)\s*=\s*([^;]+);")


def check(tree):
    document = tree.find(DOCUMENT)
    if document is None:
        return
    sections = _sections(document.lines)
    yield from _check_layouts(tree, sections)
    yield from _check_flags(tree, sections)
    yield from _check_kinds(tree, sections)
    yield from _check_segments(tree, sections)
    yield from _check_numbers(tree, sections)


def _violation(line, what, cure="the wire is specified there and spoken here: make both say the same"):
    return Violation(DOCUMENT, line, "wire-document", what, cure)


def _sections(lines):
    """Number of each section -> its lines, each with its own number."""
    found, current = {}, None
    for number, line in enumerate(lines, 1):
        if match := re.match(r"#+ (\d+(?:\.\d+)?)\.? ", line):
            current = found.setdefault(match.group(1), [])
        if current is not None:
            current.append((number, line))
    return found


def _rows(section):
    """Rows of the tables in a section below their headings: line and cells."""
    for number, line in section or []:
        if line.startswith("|") and not re.match(r"\|[-:| ]+\|$", line):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


def _code(tree, path):
    file = tree.find(SOURCES + path)
    return file.code if file else ""


def _fields(code, struct):
    """(offset, name, bytes) of each field as it lies on the wire."""
    body = re.search(rf"struct {struct} \{{(.*?)\}};", code, re.DOTALL)
    at, fields = 0, []
    for kind, names in re.findall(r"(Le\d\d|std::uint8_t)\s+([\w\s,\[\]]+);", body.group(1) if body else ""):
        for name in names.split(","):
            size = TYPES[kind] * int((re.search(r"\[(\d+)\]", name) or [0, 1])[1])
            fields.append((at, re.sub(r"\[.*", "", name).strip(), size))
            at += size
    return fields


def _check_layouts(tree, sections):
    for section, (path, struct) in LAYOUTS.items():
        wanted = _fields(_code(tree, path), struct)
        said = []
        for number, cells in _rows(sections.get(section)):
            if not cells[0].isdigit() or not re.fullmatch(r"\d+(?: \+ \d+)*", cells[2]):
                continue
            at = int(cells[0])
            for name, size in zip(cells[1].split(","), cells[2].split("+")):
                said.append((at, name.strip(), int(size)))
                at += int(size)
                if said[-1] not in wanted:
                    yield _violation(number, f"{struct} has no {name.strip()} of {size.strip()} bytes at {said[-1][0]}")
        for field in wanted:
            if field not in said:
                yield _violation(1, f"section {section} lacks {field[1]} of {struct}, {field[2]} bytes at {field[0]}")


def _enumerators(code, name):
    """Enumerators with their values; those without one follow the one before."""
    body = re.search(rf"enum class {name}[^{{]*\{{(.*?)\}};", code, re.DOTALL)
    value, found = -1, {}
    for word, given in re.findall(r"(\w+)(?:\s*=\s*(\d+))?\s*,", body.group(1) if body else ""):
        value = int(given) if given else value + 1
        found[word] = value
    return found


def _check_flags(tree, sections):
    body = re.search(r"namespace frame_flag \{(.*?)\}", _code(tree, "wire/frame.h"), re.DOTALL)
    wanted = {name: int(value) for name, value in CONSTANT.findall(body.group(1) if body else "") if name != "kAll"}
    said = {"k" + "".join(word.capitalize() for word in cells[1].split()): int(cells[0])
            for _, cells in _rows(sections.get("1.2")) if cells[0].isdigit()}
    if wanted != said:
        yield _violation(1, f"flags of frames: 1.2 says {said}, wire/frame.h {wanted}")


def _check_kinds(tree, sections):
    row = next((cells[3] for _, cells in _rows(sections.get("1.1")) if cells[1] == "kind"), "")
    said = {name: int(value) for value, name in re.findall(r"(\d+) (\w+)", row)}
    wanted = _enumerators(_code(tree, "wire/frame.h"), "FrameKind")
    if said != wanted:
        yield _violation(1, f"kinds of frames: 1.1 says {said}, wire/frame.h {wanted}")


def _check_segments(tree, sections):
    """Number, name, order, fields, payload and flags of each kind."""
    kinds = _enumerators(_code(tree, "wire/segment.h"), "SegmentKind")
    shapes = re.findall(r"^\s*\{([^{}]*)\},", _code(tree, "wire/segment.cc"), re.MULTILINE)[1:]
    said = {}
    for number, cells in _rows(sections.get("5")):
        if cells[0].isdigit():
            dots = {name for name, cell in zip(("kId", "kPeerId", "kOffset", "kTotal"), cells[3:7]) if cell == "."}
            said[cells[1].partition(":")[0]] = (number, int(cells[0]), dots, cells[2] == "yes", cells[7] == "yes",
                                                {f"k{flag.strip().capitalize()}" for flag in cells[8].split(",") if flag.strip()})
    for (name, value), shape in zip(kinds.items(), shapes):
        if name not in said:
            yield _violation(1, f"section 5 lacks segments of kind {value}, {name}")
            continue
        fields, flags, ordered, payload = (part.strip() for part in shape.split(","))
        wanted = (value, set(re.findall(r"k\w+", fields)) - {"kKey"}, ordered == "true", payload == "true",
                  set(re.findall(r"k\w+", flags)))
        if said[name][1:] != wanted:
            yield _violation(said[name][0], f"{name}: section 5 says {said[name][1:]}, the code {wanted}")
    for name in said.keys() - kinds.keys():
        yield _violation(said[name][0], f"there is no kind of segment {name}")


def _constants(code):
    return dict(CONSTANT.findall(code))


def _value(text, constants):
    """What a constant is, times in ns; None if it is no plain number."""
    text = re.sub(r"std::\w+\{(\d+)\}", r"\1", text)
    text = re.sub(r"\b(\d+)(ns|us|ms|s)\b", lambda match: str(int(match.group(1)) * UNITS[match.group(2)]), text)
    text = re.sub(r"\bk\w+\b", lambda match: f"({_value(constants.get(match.group(0), 'x'), constants)})", text)
    if not re.fullmatch(r"[\d\s*+()<-]+", text):
        return None
    return eval(text)  # pylint: disable=eval-used  # digits and operators only


def _said(text):
    """What a cell says: '25 us', '256 KB', '4096 frames', '2^63'."""
    if match := re.fullmatch(r"(\d+)\^(\d+)", text):
        return int(match.group(1)) ** int(match.group(2))
    match = re.match(r"(\d+)(?: (\w+))?", text)
    return int(match.group(1)) * UNITS.get(match.group(2), 1) if match else None


def _option(tree, name):
    file = tree.find(OPTIONS)
    match = re.search(rf'^OPTION\({name}, (\w+), "([^"]*)", "(\d+)([km]?)"', file.text if file else "", re.MULTILINE)
    if not match:
        return None
    factor = UNITS.get(match.group(2), 1) if match.group(1) == "duration" else 1
    return int(match.group(3)) * factor * {"": 1, "k": 1024, "m": 1024**2}[match.group(4)]


def _check_numbers(tree, sections):
    told = set()
    for number, cells in _rows(sections.get(NUMBERS)):
        match = re.fullmatch(r"`(?:option (\w+)|([\w/.]+): (k\w+))`", cells[0])
        if not match:
            continue
        option, path, name = match.groups()
        told.add((path, name))
        constants = {} if option else _constants(_code(tree, path))
        held = _option(tree, option) if option else _value(constants.get(name, ""), constants)
        if held is None or held != _said(cells[1]):
            yield _violation(number, f"{option or name} is {held} in the code and {cells[1]} here (times in ns)")
        shown = re.match(r"\d+(?: (?:ns|us|ms|s|KB|MB))?(?:\^\d+)?", cells[1]).group(0)
        words = " ".join(line for _, line in sections.get(cells[2], []))
        if cells[2] != "-" and not re.search(rf"(?<![\d.]){re.escape(shown)}(?![\d.]*\d)", words):
            yield _violation(number, f"section {cells[2]} does not say {shown}", "name the section that explains this number")
    if not told:
        yield _violation(1, "the table of numbers is missing")
    for file in tree.cpp():
        if not re.fullmatch(COMPLETE, file.path):
            continue
        path = file.path.removeprefix(SOURCES)
        for name, text in _constants(file.code).items():
            if _value(text, _constants(file.code)) is not None and name not in PRIVATE and (path, name) not in told:
                line = file.code.count("\n", 0, file.code.index(f" {name} ")) + 1
                yield Violation(file.path, line, "wire-document", f"{name} is not in section {NUMBERS} of {DOCUMENT}",
                                "say there what it is and why so")
