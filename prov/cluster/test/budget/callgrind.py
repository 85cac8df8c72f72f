"""Reads the profile that valgrind's callgrind writes: cost of each function with all it calls, and cost by source file.

The format is described in valgrind's manual (Callgrind Format Specification): lines of cost between lines that say where
they belong; names are written once and numbered.
"""
import re

_POSITION = re.compile(r"(fl|fi|fe|fn|cfn|cfi|cfl|ob|cob)=(?:\((\d+)\))?(?: ?(.*))?$")


class Profile:
    """Costs as dictionaries from event to count."""

    def __init__(self, lines):
        self.events = []
        self.inclusive = {}  # function -> costs of it and of what it calls
        self.own = {}  # function -> costs of its own instructions
        self.calls = {}  # function -> how often it was called
        self.by_file = {}  # source file -> costs of the instructions that come from it, inlined ones too
        self._names = {}
        self._read(lines)

    def _name(self, kind, number, text):
        space = {"f": "file", "o": "object"}[kind.removeprefix("c")[0]] if not kind.endswith("fn") else "function"
        if number is None:
            return text
        if text:
            self._names[space, number] = text
        return self._names.get((space, number), "")

    def _read(self, lines):
        file, function, own_file, called, calls = "", "", "", "", False
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("events:"):
                self.events = line.split()[1:]
            elif position := _POSITION.match(line):
                name = self._name(*position.groups())
                kind = position.group(1)
                if kind == "fl":
                    file = own_file = name
                elif kind in ("fi", "fe"):
                    file = name
                elif kind == "fn":
                    function, file = name, own_file
                elif kind == "cfn":
                    called = name
            elif line.startswith("calls="):
                calls = True
                self.calls[called] = self.calls.get(called, 0) + int(line[len("calls="):].split()[0])
            elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
                cost = {event: int(count) for event, count in zip(self.events, line.split()[1:])}
                self._add(self.inclusive, function, cost)
                if not calls:
                    self._add(self.own, function, cost)
                    self._add(self.by_file, file, cost)
                calls = False

    @staticmethod
    def _add(table, key, cost):
        entry = table.setdefault(key, {})
        for event, count in cost.items():
            entry[event] = entry.get(event, 0) + count
