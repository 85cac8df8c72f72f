"""What the tidy rules look at: the files of the tree, with and without comments and strings.

A rule is a function `check(tree)` that yields Violations. It sees the tree only through Tree, so
the self-test can hand it a planted one.
"""
import os
import re
from dataclasses import dataclass, field

SKIPPED_DIRECTORIES = {".git", "build", "__pycache__", ".cache"}
CPP_SUFFIXES = (".cc", ".h", ".c", ".def")
TEXT_SUFFIXES = CPP_SUFFIXES + (".py", ".sh", ".md", ".txt", ".cmake", ".json", ".map", ".1", ".7", ".lua")


@dataclass(order=True)
class Violation:
    path: str
    line: int
    rule: str
    what: str
    cure: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.what}\n    cure: {self.cure}"


@dataclass
class File:
    """One file: `path` is relative to the root, with forward slashes; lines count from 1."""

    path: str
    text: str
    _code: str = field(default=None, repr=False)

    @property
    def suffix(self):
        return os.path.splitext(self.path)[1]

    @property
    def lines(self):
        return self.text.splitlines()

    @property
    def is_script(self):
        return self.suffix in (".py", ".sh") or self.text.startswith("#!")

    @property
    def code(self):
        """The text with comments, string and character contents blanked, line by line in place."""
        if self._code is None:
            self._code = _blank(self.text)
        return self._code

    def component(self):
        """The component (directory of prov/cluster/src) this file belongs to, or None."""
        match = re.match(r"prov/cluster/src/(\w+)/", self.path)
        return match.group(1) if match else None


_BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def _blank(text):
    def blanked(match):
        found = match.group(0)
        line_start = text.rfind("\n", 0, match.start()) + 1
        if found[0] == '"' and text[line_start : match.start()].lstrip().startswith("#include"):
            return found
        kept = '""' if found[0] in "R\"" else ""
        return kept + re.sub(r"[^\n]", " ", found[len(kept) :])

    return _BLANKED.sub(blanked, text)


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = list(self._read())

    def _read(self):
        for directory, names, files in os.walk(self.root):
            names[:] = sorted(n for n in names if n not in SKIPPED_DIRECTORIES)
            for name in sorted(files):
                path = os.path.join(directory, name)
                try:
                    with open(path, encoding="utf-8") as stream:
                        text = stream.read()
                except (UnicodeDecodeError, OSError):
                    continue
                relative = os.path.relpath(path, self.root).replace(os.sep, "/")
                if os.path.splitext(name)[1] in TEXT_SUFFIXES or text.startswith("#!"):
                    yield File(relative, text)

    def cpp(self, under=""):
        return [f for f in self.files if f.suffix in CPP_SUFFIXES and f.path.startswith(under)]

    def find(self, path):
        return next((f for f in self.files if f.path == path), None)

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))
