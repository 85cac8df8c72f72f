"""Which files of the tree are pages of the site, and where they are there.

A page is named by its path in the tree (`man/vcluster.1`), and by its URI in the site (`man/vcluster.1.md`). Pages of docs/site are
at the top of the site. README.md is no page: pages of docs/site include its sections.
"""
import posixpath
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
SITE = "docs/site/"
DOCUMENTS = ("*.md", "docs/*.md", "docs/design/*.md", "examples/**/*.md", "prov/cluster/**/*.md")
MANUALS = "man/*.[1-8]"
HOME = "README.md"


def _paths(*patterns):
    return sorted(path.relative_to(TOP).as_posix() for pattern in patterns for path in TOP.glob(pattern))


def manuals():
    return _paths(MANUALS)


def documents():
    return [path for path in _paths(*DOCUMENTS) if path != HOME]


def own_pages():
    return _paths(SITE + "**/*.md")


def uri_of(path):
    """The URI of a page, of README.md (whose introduction is the home page), or of any other file."""
    if path == HOME:
        return "index.md"
    if path.startswith(SITE):
        return path[len(SITE):]
    return path + ".md" if path.startswith("man/") else path


def path_of(uri):
    if uri.startswith("man/"):
        return uri[:-len(".md")]
    return uri if (TOP / uri).is_file() and not (TOP / SITE / uri).is_file() else SITE + uri


def target(source, link):
    """The path in the tree that a relative link in a file leads to, its README.md if it is a folder; None if there is nothing."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (TOP / path).is_dir():
        path += "/" + HOME
    return path if (TOP / path).is_file() else None


def read(path):
    return (TOP / path).read_text(encoding="utf-8")
