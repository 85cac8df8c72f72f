#!/usr/bin/env python3
"""Manuals and commands say the same: each option of `--help` stands in the manual, each option in the manual in a `--help`, with
the same number as its default. And the table of fi_cluster(7) has the defaults and limits of the provider's own options, each of
which one page describes. Each warning of the provider has a heading in fi_cluster_messages(7). Manuals refer to pages that exist. No line of a manual loses the spaces between its words.

    manuals_test.py --commands DIRECTORY...        where the commands are; the first that has one counts
"""
import argparse
import glob
import os
import re
import subprocess
import unittest

import log_lines

MAN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "man")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
# Options of other commands that a manual mentions.
OTHERS = {"cluster-ip": {"--cap-add", "--device", "--for", "--rails"}, "cluster-page": {"--agents"}, "clusterd": {"--agents"}, "cluster-perf": {"--for"}, "vcluster": {"--mca", "--rsh"}}
HELP = {"-h", "--help"}
# A page of this project, as manuals name it: `.BR fi_cluster (7)`, also in a table.
REFERENCE = re.compile(r"\b(fi_cluster\w*|cluster-\w+|clusterd|vcluster) ?\((\d)\)")
SOURCE = os.path.join(MAN, "..", "prov", "cluster", "src")
PROVIDER_OPTIONS = os.path.join(SOURCE, "provider", "options.def")
OPTIONS = None


def manual(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r'^\.\\".*$', "", text, flags=re.MULTILINE)
    return text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "").replace("\\fP", "")


def said(*words):
    found = [path for path in (os.path.join(folder, words[0]) for folder in OPTIONS.commands) if os.access(path, os.X_OK)]
    if not found:
        raise AssertionError(f"no {words[0]} in {', '.join(OPTIONS.commands)}")
    return subprocess.run([found[0], *words[1:], "--help"], capture_output=True, text=True, check=True, timeout=60,
                          env={**os.environ, "COLUMNS": "200"}).stdout


def listed(text):
    """The options that a help lists: those at the beginning of its lines, with their other names."""
    heads = re.findall(r"^ +(--?[a-zA-Z][^ \n]*(?:(?:, | )-?-[a-zA-Z][^ \n]*| [A-Z{\[]\S*)*)", text, re.MULTILINE)
    return {option for head in heads for option in OPTION.findall(head)}


def plain(text):
    """The words of a part of a manual, without formatting."""
    text = re.sub(r"^\.(?:B|I|BR|IR|BI|RB) (.*)$", lambda line: line.group(1).replace('"', ""), text, flags=re.MULTILINE)
    return re.sub(r" ([:;,.])", r"\1", " ".join(text.split()))


def paragraph(text, option):
    """The text below an option that heads a paragraph."""
    for part in re.split(r"^\.TP$", text, flags=re.MULTILINE)[1:]:
        head, _, rest = part.strip().partition("\n")
        if option in OPTION.findall(head):
            return plain(rest)
    return ""


def default_number(text, option):
    """The default of an option in a help, if it begins with a digit."""
    for part in re.split(r"^ {2}(?=-)", text, flags=re.MULTILINE)[1:]:
        first = part.partition("\n")[0]
        found = re.search(r"\(default: (\d[\w.]*)[,)]", " ".join(part.split())) or re.search(r"=(\d[\w.]*)$", first)
        if found and option in listed("  " + first):
            return found.group(1)
    return None


def helps_of(command):
    text = said(command)
    commands = re.search(r"^usage: \S+ \[-h\](?: \[--version\])? COMMAND \.\.\.$", text, re.MULTILINE)
    return [text, *(said(command, part) for part in (re.findall(r"^    ([a-z]+) ", text, re.MULTILINE) if commands else []))]


def glued(line):
    """Two words that a macro of alternating fonts would print without a space: `.BR A , and so` is "A,andso"."""
    if not re.match(r"\.(?:BR|RB|BI|IB|IR|RI) ", line):
        return None
    return re.search(r"(?<![\w\"-])[a-z]+ [a-z]+(?![\w\"-])", re.sub(r'"[^"]*"', '""', line[4:]))


def warnings_of(code):
    """The format strings of the calls of warn() in a source file; a call may choose between two."""
    for call in re.finditer(r"\bwarn\(", code):
        depth, at = 1, call.end()
        while depth:
            text = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+').match(code, at)
            if text and depth == 1 and len(re.findall(r"[a-z]{2,}", text.group())) > 3:
                yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text.group()))
            depth += {"(": 1, ")": -1}.get(code[at], 0) if not text else 0
            at = text.end() if text else at + 1


def explains(heading, line):
    """Whether a heading of fi_cluster_messages(7) is a line that the format string makes, or its first words."""
    pieces = []
    for part in re.split(r"((?<=: )%s(?:%s)*|%[.\d]*\w+)", line):
        reason = part.startswith("%s") and pieces and pieces[-1] == "\\ "
        pieces += [".+" if reason else r"\S+(?: \S+)?"] if part.startswith("%") else map(re.escape, re.findall(r"\s*\S+|\s", part))
    pattern = ""
    for piece in reversed(pieces):
        pattern = f"{piece}(?:{pattern})?"
    return re.fullmatch(pattern, heading.removesuffix("...").strip()) is not None


class Manuals(unittest.TestCase):
    maxDiff = None

    def test_words_keep_their_spaces(self):
        self.assertTrue(glued(".BR A , and so on"))
        self.assertFalse(glued('.BR a " and " b (7),'))
        for path in sorted(glob.glob(os.path.join(MAN, "*.[1-8]"))):
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            self.assertGreater(len(lines), 10, path)
            self.assertEqual([line for line in lines if glued(line)], [], f"in {os.path.basename(path)}, printed without spaces")

    def test_no_document_cuts_the_rail_of_the_launcher(self):
        """Launchers have TCP connections on the first rail: a job whose first rail is cut waits for them."""
        paths = [os.path.join(MAN, "..", "README.md"), *glob.glob(os.path.join(MAN, "*.[1-8]")),
                 *glob.glob(os.path.join(MAN, "..", "prov", "cluster", "docs", "*.md"))]
        cuts = {path: re.findall(r"ip link set n\d+r(\d+) down", manual(path)) for path in paths}
        self.assertTrue(cuts[paths[0]], "the README has an experiment")
        self.assertEqual({path: rails for path, rails in cuts.items() if "0" in rails}, {})

    def test_traps_of_mpi_libraries(self):
        text = manual(os.path.join(MAN, "cluster-mpi.7"))
        for head, words in (("mpi4py.futures with Open MPI 4.1.4", ("hangs with pml cm", "MPI_Improbe", "pml ob1")),
                            ("MPI_Comm_spawn says", ("free slots", "vcluster mpirun --slots")),
                            ("A cable was cut", ("launcher", "cluster-info --why"))):
            found = [plain(part.strip().partition("\n")[2]) for part in re.split(r"^\.(?:TP|SH.*)$", text, flags=re.MULTILINE)
                     if part.strip().startswith(f".I {head}")]
            self.assertEqual(len(found), 1, f"a paragraph: {head}")
            for word in words:
                self.assertIn(word, found[0])

    def test_overview_is_short(self):
        words = len(manual(os.path.join(MAN, "fi_cluster.7")).split())
        self.assertLessEqual(words, 2500, "words of fi_cluster.7, an overview: details belong to the other pages")

    def test_each_warning_has_a_heading(self):
        headings, lines = log_lines.headings(), set()
        for path in glob.glob(os.path.join(SOURCE, "**", "*.cc"), recursive=True):
            with open(path, encoding="utf-8") as file:
                lines.update(warnings_of(file.read()))
        self.assertGreater(len(lines), 30, "calls are understood")
        missing = [line for line in sorted(lines) if not any(explains(heading, line) for heading in headings)]
        self.assertEqual(missing, [], "warnings without a heading in fi_cluster_messages.7")

    def test_references(self):
        """The commands and pages of this project that a page names have a page, and fi_cluster(7) names all its parts."""
        pages = {os.path.basename(path) for path in glob.glob(os.path.join(MAN, "*.[1-8]"))}
        named = {page: {f"{name}.{section}" for name, section in REFERENCE.findall(manual(os.path.join(MAN, page)))} for page in pages}
        self.assertIn("fi_cluster.7", named["cluster-info.1"], "references are understood")
        self.assertEqual({page: names - pages for page, names in named.items() if names - pages}, {})
        parts = {page for page in pages if page.startswith("fi_cluster_")}
        self.assertEqual(parts - named["fi_cluster.7"], set(), "parts that fi_cluster(7) does not name")

    def test_defaults_of_the_provider(self):
        pages = [manual(path) for path in sorted(glob.glob(os.path.join(MAN, "fi_cluster*.7")))]
        table = manual(os.path.join(MAN, "fi_cluster.7")).partition(".SH RUNTIME PARAMETERS")[2].partition("\n.SH ")[0]
        with open(PROVIDER_OPTIONS, encoding="utf-8") as file:
            rows = re.findall(r'^OPTION\((\w+), (\w+), "[^"]*", "([^"]*)", (\d+), (\d+),', file.read(), re.MULTILINE)
        self.assertGreater(len(rows), 10)
        for name, kind, default, least, most in rows:
            paragraphs = re.compile(rf"^\.TP\n\.B FI_CLUSTER_{name.upper()}\n(.*?)^\.(?:TP|SH)", re.MULTILINE | re.DOTALL)
            found = [words for page in pages for words in paragraphs.findall(page)]
            self.assertEqual(len(found), 1, f"FI_CLUSTER_{name.upper()} has a paragraph")
            words = plain(found[0])
            row = re.search(rf"^FI_CLUSTER_{name.upper()};T{{\n(.*?)^T}}", table, re.MULTILINE | re.DOTALL)
            self.assertIsNotNone(row, f"FI_CLUSTER_{name.upper()} has a row in the table of fi_cluster(7)")
            if default:
                self.assertRegex(row.group(1), rf"^{re.escape(default)}\b", f"FI_CLUSTER_{name.upper()}: its default in the table")
            if default:
                wanted = rf"(Default: {default}\.|[Tt]he default {default} |(?<![\w-]){default} \(the default)"
                self.assertRegex(words, wanted, f"FI_CLUSTER_{name.upper()}: what it is by default")
            if kind in ("number", "duration") and least != "0":
                self.assertIn(f"{least} to {most}.", words, f"FI_CLUSTER_{name.upper()}: its limits")
                self.assertIn(f"{least} to {most} ", row.group(1), f"FI_CLUSTER_{name.upper()}: its limits in the table")


def add_case(path):
    command = os.path.basename(path).rpartition(".")[0]

    def case(self):
        text, helps = manual(path), helps_of(command)
        mentioned, offered = set(OPTION.findall(text)), set().union(*map(listed, helps)) - HELP
        self.assertGreater(len(offered), 2, "the help is not understood")
        self.assertEqual(sorted(offered - mentioned), [], f"in {command} --help, not in its manual")
        unknown = mentioned - offered - HELP - OTHERS.get(command, set())
        self.assertEqual(sorted(option for option in unknown if option.startswith("--")), [],
                         f"in the manual of {command}, not in its --help")
        for option in sorted(offered):
            numbers = {default_number(each, option) for each in helps} - {None}
            words = paragraph(text, option)
            stated = re.search(r"Default: (\d[\w.]*?)\.(?= |$)", words)
            found = {stated.group(1)} if stated else {number for number in numbers if re.search(rf"\b{re.escape(number)}\b", words)}
            self.assertEqual(found, numbers, f"{command} {option}: its default in the manual and in --help")

    setattr(Manuals, "test_" + command.replace("-", "_"), case)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", required=True)
    OPTIONS = parser.parse_args()
    for manual_path in sorted(glob.glob(os.path.join(MAN, "*.[18]"))):
        add_case(manual_path)
    unittest.main(argv=["manuals_test"], verbosity=2)
