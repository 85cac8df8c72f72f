"""What stands in words: headers introduce themselves, manuals and maps name what exists."""
import re

from source import Violation

# Assembled, so that this file does not complain about itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(" + "|".join(["wo" + "rk/", "ho" + r"me/\w", "ro" + r"ot/\w", "tm" + r"p/\w"]) + ")")

OPTIONS = "prov/cluster/src/provider/options.def"
MANUAL = "man/fi_cluster.7"
PARTS = re.compile(r"man/fi_cluster_\w+\.7")
# The map of the components, and the pages that continue it.
MAPS = ("prov/cluster/README.md", "prov/cluster/docs/paths.md", "prov/cluster/docs/glossary.md")
BASES = ("prov/cluster/src/", "prov/cluster/", "")


def check(tree):
    yield from check_headers(tree)
    yield from check_words(tree)
    yield from check_options(tree)
    yield from check_maps(tree)


def check_headers(tree):
    for file in tree.cpp():
        if file.suffix != ".h":
            continue
        if not re.search(r"^#pragma once$", file.text, re.MULTILINE) and "#ifndef" not in file.text:
            yield Violation(file.path, 1, "header", "no include guard", "write #pragma once below the opening comment")
        if not re.match(r"\s*(?:/\*|//)", file.text):
            yield Violation(file.path, 1, "header", "no opening comment",
                            "say first what this header is, what it knows and what it does not")


def check_words(tree):
    for file in tree.files:
        for number, line in enumerate(file.lines, 1):
            if match := UNFINISHED.search(line):
                yield Violation(file.path, number, "unfinished", f"'{match.group(0)}'",
                                "do it now, or open an issue and leave the code without a note")
            if match := MACHINE_PATH.search(line):
                yield Violation(file.path, number, "machine-path", f"'{match.group(0)}...' is a path of one machine",
                                "use a path relative to the tree, an argument or mktemp")


def check_options(tree):
    table, manual = tree.find(OPTIONS), tree.find(MANUAL)
    if table is None or manual is None:
        return
    rows = {match.group(1).upper(): table.code.count("\n", 0, match.start()) + 1
            for match in re.finditer(r"^[ \t]*[A-Z_]+\(\s*(\w+)", table.code, re.MULTILINE)}
    extensions = tree.find("include/rdma/fi_ext_cluster.h")
    constants = extensions.code if extensions else ""
    for name, line in rows.items():
        if not re.search(rf"\bFI_CLUSTER_{name}\b", manual.text.replace("\\", "")):
            yield Violation(OPTIONS, line, "option-manual", f"option {name.lower()} is not in {manual.path}",
                            f"describe FI_CLUSTER_{name} there")
    for page in [file for file in tree.files if file.path == MANUAL or PARTS.fullmatch(file.path)]:
        words = re.sub(r"^\.TH.*$", "", page.text.replace("\\", ""), flags=re.MULTILINE)
        for match in re.finditer(r"\bFI_CLUSTER_([A-Z0-9_]*[A-Z0-9])\b", words):
            if match.group(1) not in rows and match.group(0) not in constants:
                yield Violation(page.path, words.count("\n", 0, match.start()) + 1, "option-manual",
                                f"{match.group(0)} has no row in {OPTIONS}", "add the row or remove it from the manual")


def check_maps(tree):
    """Every `path`, `path:function` and `function()` in the map of the components must exist."""
    everything = "\n".join(file.code for file in tree.cpp())
    for page in filter(None, map(tree.find, MAPS)):
        for number, line in enumerate(page.lines, 1):
            spans = re.findall(r"`([^`]+)`", line)
            folders = [span for span in spans if span.endswith("/")]
            for span in spans:
                if reason := _missing(tree, everything, span, folders):
                    yield Violation(page.path, number, "readme", reason, "name what exists today, or delete the line")


def _missing(tree, everything, span, folders):
    """Why a span names nothing, or None. A bare file name may lie in a folder named on the same line."""
    path = re.fullmatch(r"([\w./+-]+\.(?:cc|h|def|map|md|py|sh|txt)|[\w./-]+/)(?::\s*([\w:~]+)(?:\(.*\))?)?", span)
    if path:
        places = [base + folder for base in BASES for folder in ["", *folders]]
        where = next((place + path.group(1) for place in places if tree.exists(place + path.group(1))), None)
        if where is None:
            return f"'{path.group(1)}' is no file or folder of the tree"
        name = path.group(2) and path.group(2).split("::")[-1]
        file = tree.find(where)
        if name and file and not re.search(rf"\b{re.escape(name)}\b", file.code):
            return f"'{name}' does not occur in {where}"
        return None
    call = re.fullmatch(r"((?:[\w~]+(?:::|\.|->))*)([\w~]+)\(.*\)", span)
    if call and not re.match(r"(fi|FI)_", call.group(2)):
        if not re.search(rf"\b{re.escape(call.group(2))}\b", everything):
            return f"'{call.group(2)}' is no function of the tree"
    return None
