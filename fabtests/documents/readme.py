"""The commands of the README, out of its blocks of code, in bash scripts that run them as they stand there.

Comments at the beginning of a line part a block: each part of the first lines is about one MPI library, and what its comment says in
brackets about installation is run, too. What stands before the first comment is for all of them.
"""
import os
import re
from dataclasses import dataclass, field

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
# Lines that run all: packages.from_nothing_demo, packages.from_nothing_check, util/long.
ELSEWHERE = ("util/demo", "util/check", "util/long")
# Lines that build, install or measure: only the long form runs them.
LONG = ("util/setup ", "cmake ", "util/package", "apt install ./", "util/cluster-perf ")
# Commands that the text mentions are run by readme_words_test.py, by packages.readme, or for a reason by neither.
SAID = ("util/", "fabtests/", "man -l ", "fi_", "setcap ", "ssh ", "apt ")
NEEDS_MORE = {"ssh -L 8443:127.0.0.1:8443 HOST": "a second machine", "fabtests/mpi/collective_times.py": "half an hour; its figures are in docs/perf"}
FIVE_LINES, BROWSER, USE, TOOLS = "Five lines for each MPI", "The cluster in a browser", "How to use it", "The tools"
LIBRARIES = {"openmpi4": "Open MPI 4", "openmpi5": "Open MPI 5", "mpich": "MPICH", "intel": "Intel MPI"}
_COLLECTIVES = "Broadcasts"  # with MPICH, as the line is written
_OTHER = "OTHER-NODE"


@dataclass
class Part:
    comment: str = ""
    commands: list = field(default_factory=list)

    def installation(self):
        found = re.search(r"\((?:Debian: )?(apt install [^)]*)\)", self.comment)
        return [found.group(1)] if found else []


@dataclass
class Block:
    heading: str
    parts: list

    def commands(self):
        return [command for part in self.parts for command in part.commands]


def text():
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as file:
        return file.read()


def _parts(lines):
    parts = [Part()]
    for line in lines:
        if line.startswith("# "):
            if parts[-1].commands or not parts[-1].comment:
                parts.append(Part())
            parts[-1].comment += line.removeprefix("#")
        elif parts[-1].commands and parts[-1].commands[-1].endswith("\\"):
            parts[-1].commands[-1] += "\n" + line
        elif line:
            parts[-1].commands.append(line)
    return parts


def blocks():
    """The blocks in the order of the README; empty lines do not split them."""
    found = []
    for section in re.split(r"^## ", text(), flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        for code in re.findall(r"(?:^    .*\n|^\n(?=    ))+", rest, re.MULTILINE):
            lines = [line[4:] for line in code.strip("\n").splitlines()]
            found.append(Block(heading, _parts(lines)))
    return found


def blocks_of(heading):
    return [block for block in blocks() if block.heading == heading]


def spoken_of():
    """The code in the text, without the blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^    .*$", "", text(), flags=re.MULTILINE))


def spoken_of_in(heading, start):
    section = text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [code for code in re.findall(r"`([^`\n]+)`", re.sub(r"^    .*$", "", section, flags=re.MULTILINE)) if code.startswith(start)]


def said():
    """The commands that the text mentions."""
    return [code for code in dict.fromkeys(spoken_of()) if code.startswith(SAID)]


def is_long(command):
    return command.startswith(LONG)


def _chosen(commands, quick):
    return [command for command in commands if not command.startswith(ELSEWHERE) and not (quick and is_long(command))]


def of_mpi(library, quick=False):
    """The lines for all libraries, and those of one: it is installed before a program is compiled."""
    common, *parts = blocks_of(FIVE_LINES)[0].parts
    mine = next(part for part in parts if part.comment.startswith(f" {LIBRARIES[library]} "))
    build, compile_program = ([command for command in common.commands if is_long(command) == long] for long in (True, False))
    more = [command for part in parts if part.comment.startswith(f" {_COLLECTIVES}") and library == "mpich" for command in part.commands]
    return _chosen([*build, *mine.installation(), *compile_program, *mine.commands, *more], quick)


def of_pingpong(quick=False):
    """The first node waits for the second, so each has a script; the nodes are virtual ones."""
    commands = _chosen(blocks_of(USE)[0].commands(), quick)
    before = [command for command in commands if not command.startswith("fi_pingpong")]
    calls = [command for command in commands if command.startswith("fi_pingpong") and _OTHER in command]
    waits = [command for command in commands if command not in before + calls]
    calls = [command.replace(_OTHER, "node1") for command in calls]
    return ["util/vcluster up -n 2", *before, f"util/vcluster exec node1 bash -ec {_quoted(before[1:] + waits)} &",
            "sleep 2", f"util/vcluster exec node2 bash -ec {_quoted(before[1:] + calls)}", "wait $!", "util/vcluster down"]


def of_tools(quick=False):
    """With the program of the first lines, for the library that they say."""
    program = [command for command in of_mpi("openmpi4", True) if command.startswith("mpicc ")]
    return [*program, *_chosen(blocks_of(TOOLS)[0].commands(), quick)]


def of_installation():
    return _chosen(blocks_of(USE)[1].commands(), False)


def of_browser():
    """The line, and those which the text below it proposes."""
    return [*blocks_of(BROWSER)[0].commands(), *spoken_of_in(BROWSER, "util/vcluster ")]


def of_manuals():
    """Shows every page that the text names, where nothing to show it with was there."""
    return ["apt install man-db", "export MANPAGER=cat MANWIDTH=100", *(code for code in said() if code.startswith("man -l "))]


def of_site():
    return ["util/setup --for docs", "util/site"]


def of_picture():
    """The run that the picture is made of, once instead of nine times, and the picture."""
    return ["util/setup --for perf", "util/cluster-perf --readme --repetitions 1 --markdown build/figures.md",
            "python3 util/cluster_perf_lib/overview.py build/figures.md build/figures.svg", "grep -c '<text' build/figures.svg"]


def of_slurm():
    return [of_browser()[0].partition("#")[0] + "--slurm", "util/vcluster down"]


def run_elsewhere():
    """Commands of the text that packages.readme and the tests of ELSEWHERE run."""
    blocks_too = [part.strip() for block in blocks() for command in block.commands() for part in command.partition("  #")[0].split("&&")]
    return {*of_manuals(), *of_site(), *of_browser(), "util/cluster-perf --readme", "util/setup", *ELSEWHERE, *blocks_too,
            *(command.partition(" ")[0] for command in blocks_too if command.startswith(("util/", "fi_")))}


def _quoted(lines):
    return "'" + "\n".join(lines).replace("'", "'\\''") + "'"
