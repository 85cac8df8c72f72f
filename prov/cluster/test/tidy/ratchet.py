"""Sizes that only ever go down: a file has at most 800 lines, a function at most 70."""
import ast
import re

from source import Violation

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70

_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b")
_LABEL = re.compile(r"\b(public|private|protected)\s*:")
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)


def check(tree):
    for file in tree.files:
        if file.suffix not in (".cc", ".h", ".c") and not file.is_script:
            continue
        count = len(file.lines)
        if count > FILE_LINES_MAX:
            yield Violation(file.path, FILE_LINES_MAX + 1, "file-size",
                            f"{count} lines, at most {FILE_LINES_MAX} are allowed", "split the file by concern")
        for name, first, last in functions(file):
            if last - first + 1 > FUNCTION_LINES_MAX:
                yield Violation(file.path, first, "function-size",
                                f"'{name}' has {last - first + 1} lines, at most {FUNCTION_LINES_MAX} are allowed",
                                "take a named step out of it")


def functions(file):
    """(name, first line, last line) of every function in a C++ or Python file."""
    if file.suffix in (".cc", ".h", ".c"):
        return list(_cpp_functions(file.code))
    if file.suffix == ".py" or file.text.startswith("#!/usr/bin/env python"):
        return list(_python_functions(file.text))
    return []


def _python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def _cpp_functions(code):
    """Counts braces. What precedes a brace says what it opens: a scope, a function, or a value."""
    for noise in (_PREPROCESSOR, _LABEL):
        code = noise.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), code)
    depth, head_start = 0, 0
    inside = None  # depth at which the function we are in was opened
    first_line, name, closed_at = 0, "", -1
    for match in re.finditer(r"[{};]", code):
        at, sign = match.start(), match.group(0)
        if sign == "{":
            head = code[head_start:at]
            goes_on = head_start == closed_at + 1 and head.strip()[:1] in ("", ",")  # ": a_{1}, b_{2} {"
            if inside is None and (goes_on or _opens_function(head)):
                inside = depth
                if not goes_on:
                    first_line = code.count("\n", 0, at - len(head.lstrip())) + 1
                    name = head.split("(")[0].split()[-1]
            depth += 1
        elif sign == "}":
            depth -= 1
            if inside == depth:
                inside = None
                closed_at = at
                yield name, first_line, code.count("\n", 0, at) + 1
        if inside is None:
            head_start = at + 1


def _opens_function(head):
    head = re.sub(r"\[\[.*?\]\]", " ", head)
    plain = re.sub(r"\btemplate\s*<[^;{}]*?>\s*(?=\w)", " ", head, flags=re.DOTALL)
    return "(" in head and not head.rstrip().endswith("=") and not _SCOPE.search(plain.split("(")[0])
