"""What MkDocs calls while it builds the site (mkdocs.yml): it gets the documents and manuals of the tree as pages."""
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from site_lib import manual, pages, tree  # noqa: E402

LINKED = re.compile(r"\]\((?!\w+:)([^)\s#]+)")


def _assets():
    """Other files that documents show or link to: pictures, programs, headers."""
    sources = [tree.HOME, *tree.documents(), *tree.own_pages()]
    pairs = [(source, link) for source in sources for link in LINKED.findall(tree.read(source))]
    found = {tree.target(source, link) for source, link in pairs} - {None, *sources, *tree.manuals()}
    return sorted(path for path in found if not path.startswith(tree.SITE))


def on_config(config):
    """Each manual is in the menu: first the provider's, then those of the tools."""
    rows = sorted(manual.names().items(), key=lambda row: (not row[0][0].startswith("fi_"), row[0][1] != "7", row[0]))
    menu = next(item["Reference"] for item in config.nav if "Reference" in item)
    menu += [{f"{name}({section})": tree.uri_of(path)} for (name, section), path in rows]
    return config


def on_files(files, config):
    for path in [*tree.documents(), *tree.manuals(), *_assets()]:
        uri = tree.uri_of(path)
        if files.get_file_from_path(uri) is None:
            content = "" if uri.endswith(".md") else (tree.TOP / path).read_bytes()
            files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    def address(path, seen_from):
        here, there = (files.get_file_from_path(tree.uri_of(each)) for each in (seen_from, path))
        return get_relative_url(there.url, here.url)

    return pages.Pages(address).text(tree.path_of(page.file.src_uri))
