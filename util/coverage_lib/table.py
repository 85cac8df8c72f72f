"""Reads the line counts of `llvm-cov export -format=lcov` and shows those of the files below one directory.

table.py DIRECTORY COMPONENTS LEAST MISSING: a table of lines per file and per component ("wire,protocol"), and, if MISSING is
"yes", the lines that were not run. Exit status 1: a component has less than LEAST percent.
"""

import sys
from pathlib import Path


def counted_lines(export):
    """Path -> {line: run count}, for each file that has any."""
    files = {}
    for line in export:
        what, _, rest = line.strip().partition(":")
        if what == "SF":
            lines = files.setdefault(Path(rest).resolve(), {})
        elif what == "DA":
            number, count = rest.split(",")[:2]
            lines[int(number)] = int(count)
    return {path: lines for path, lines in files.items() if lines}


def show_missing(files):
    for path, lines in files.items():
        text = path.read_text().splitlines()
        for number, count in lines.items():
            if count == 0:
                print(f"{path}:{number}: {text[number - 1].strip()}")


def show_row(name, run, count):
    print(f"{name:28}{run:6} of{count:5}{100 * run / count:8.1f} %")


def show_component(component, files):
    """Prints the rows of a component and returns the percentage of its lines that ran."""
    run = {path: sum(count > 0 for count in lines.values()) for path, lines in files.items()}
    for path, lines in files.items():
        show_row(f"  {path.name}", run[path], len(lines))
    total = sum(map(len, files.values()))
    show_row(f"{component}/", sum(run.values()), total)
    return 100 * sum(run.values()) / total


def main(directory, components, least, missing):
    files = counted_lines(sys.stdin)
    shares = []
    for component in components.split(","):
        inside = {path: lines for path, lines in sorted(files.items()) if path.parent == Path(directory, component).resolve()}
        if missing == "yes":
            show_missing(inside)
        shares.append(show_component(component, inside) if inside else 0)
    enough = min(shares) >= float(least)
    print("enough" if enough else f"not enough: each component must have {least} % of its lines run")
    return 0 if enough else 1


sys.exit(main(*sys.argv[1:]))
