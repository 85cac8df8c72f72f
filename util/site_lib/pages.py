"""What a page says: the text of a file, with what it includes, and with links that lead to pages of the site.

    <!-- include README.md -->                        what stands before the first section
    <!-- include README.md "The tools" -->            one section, without its heading
    <!-- include man/cluster-mpi.7 "NOTES" "MPICH" -->   a section of a manual, or one paragraph of it
    <!-- lines mpich -->                              the lines of README.md that install, compile and run for one MPI library
    <!-- manuals -->                                  all manuals with their summaries
"""
import posixpath
import re
import sys

from . import manual, tree

sys.path.insert(0, str(tree.TOP / "fabtests" / "documents"))
import readme  # noqa: E402

DIRECTIVE = re.compile(r"^<!-- (include|lines|manuals) ?(.*?) ?-->$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)\s#]*)(#[^)\s]*)?(?=\))")
NAMED = re.compile(r"`(?:man -l )?(man/[\w-]+\.\d)`")


class Unknown(Exception):
    pass


def slug(heading):
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")


def words_of(arguments):
    path, _, rest = arguments.partition(" ")
    return [path, *re.findall(r'"([^"]*)"', rest)]


def section_of(text, heading=None):
    if heading is None:
        return re.sub(r"\A# .*\n", "", text.partition("\n## ")[0]).strip()
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise Unknown(f"there is no section {heading}")
    return found.group(1).strip()


def places_of_sections():
    """{anchor in README.md: path of the page that includes this section}"""
    found = {}
    for page in tree.own_pages():
        for _, arguments in DIRECTIVE.findall(tree.read(page)):
            path, *headings = words_of(arguments)
            if path == tree.HOME and headings:
                found["#" + slug(headings[0])] = page
    return found


class Pages:
    def __init__(self, address):
        """`address(path, page)` is the address of a file of the tree as a page of the site sees it."""
        self._address = address
        self._sections = places_of_sections()

    def text(self, path):
        if path.startswith("man/"):
            return manual.page(path, lambda other: self._address(other, path))
        return DIRECTIVE.sub(lambda found: self._included(path, *found.groups()), self._linked(tree.read(path), path, path))

    def _included(self, page, kind, arguments):
        if kind == "lines":
            return "```sh\n" + "\n".join(re.sub(r" && (?!\\. )", " &&\n    ", line) for line in readme.of_mpi(arguments)) + "\n```"
        if kind == "manuals":
            rows = [f"| [{name}({section})]({self._relative(path, page)}) | {manual.summary(path)} |"
                    for (name, section), path in sorted(manual.names().items(), key=lambda row: (row[0][1], row[0][0]))]
            return "| manual | about |\n|---|---|\n" + "\n".join(rows).replace("\\-", "-")
        path, *headings = words_of(arguments)
        if path.startswith("man/"):
            return manual.part(path, lambda other: self._address(other, page), *headings)
        return self._linked(section_of(tree.read(path), *headings), path, page)

    def _relative(self, path, page):
        return posixpath.relpath(tree.uri_of(path), posixpath.dirname(tree.uri_of(page)) or ".")

    def _linked(self, text, source, page):
        """Links of a file are about its own place in the tree; here they lead from the page."""
        def link(found):
            to, anchor = found.group(1), found.group(2) or ""
            path = tree.target(source, to) if to else source
            if path == tree.HOME and anchor:
                if anchor not in self._sections:
                    raise Unknown(f"{source}: no page includes README.md{anchor}")
                path, anchor = self._sections[anchor], ""
            if path is None:
                return found.group(0)  # MkDocs reports it
            if not to and source == page:
                return anchor
            return self._relative(path, page) + anchor

        text = LINK.sub(link, text)
        return NAMED.sub(lambda found: f"[{found.group(0)}]({self._relative(found.group(1), page)})", text)
