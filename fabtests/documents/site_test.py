#!/usr/bin/env python3
"""The documentation site can be built without a network, its links lead somewhere, and a reader's browser fetches nothing elsewhere.

Skipped, with the reason, where MkDocs or mandoc is not installed.
"""
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
for folder in (os.path.join(TOP, "util"), os.path.join(HERE, "..")):
    sys.path.insert(0, folder)
import readme  # noqa: E402
import virtual_nodes  # noqa: E402
from site_lib import builder, pages, tree  # noqa: E402

FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}


class Page(html.parser.HTMLParser):
    """The anchors of a page, and what it refers to: (tag, attribute, address)."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.references = {""}, []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.references.append((tag, name, value))


def pages_in(directory):
    return {os.path.join(folder, name): Page(os.path.join(folder, name))
            for folder, _, names in os.walk(directory) for name in names if name.endswith(".html")}


def broken(site):
    """The references that lead to no file, or to no anchor of a page. 404.html stands at no place of its own."""
    for path, page in site.items():
        for _, _, reference in page.references:
            parts = urllib.parse.urlsplit(reference)
            if parts.scheme or parts.netloc or os.path.basename(path) == "404.html":
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not os.path.isfile(target) or target in site and anchor not in site[target].anchors:
                yield path, reference


def without_network():
    """Words before a command that take the network from it, if this user may do that."""
    words = ["unshare", "--net"]
    return words if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0 else []


class Site(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="site-")
        cls.addClassCleanup(directory.cleanup)
        cls.place = directory.name
        done = subprocess.run([*without_network(), os.path.join(TOP, "util", "site"), "--out", cls.place], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(f"not built: {done.stdout}{done.stderr}")
        cls.pages = pages_in(cls.place)

    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(self.pages), 60)
        self.assertGreater(sum(len(page.references) for page in self.pages.values()), 3000)
        self.assertEqual([(os.path.relpath(path, self.place), reference) for path, reference in broken(self.pages)], [])

    def test_links_without_a_target_are_noticed(self):
        with tempfile.TemporaryDirectory(prefix="site-") as directory:
            for name, text in (("a.html", '<p id="here"><a href="b.html#there">b</a><a href="#here">a</a><a href="b.html#gone">b</a>'),
                               ("b.html", '<p id="there"><img src="gone.png"><a href="https://a.example/">a</a>')):
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual({reference for _, reference in broken(pages_in(directory))}, {"b.html#gone", "gone.png"})

    def test_nothing_is_fetched_from_elsewhere(self):
        fetched = {reference for page in self.pages.values() for tag, name, reference in page.references if (tag, name) in FETCHED}
        self.assertGreater(len(fetched), 5)
        self.assertEqual([reference for reference in fetched if urllib.parse.urlsplit(reference).netloc], [])

    def test_every_manual_and_document_is_a_page(self):
        wanted = [*tree.manuals(), *tree.documents(), *tree.own_pages()]
        for path in wanted:
            uri = re.sub(r"README\.md$", "index.md", tree.uri_of(path))
            self.assertIn(os.path.join(self.place, uri.removesuffix(".md") + ".html"), self.pages, path)

    def test_every_section_of_the_readme_is_on_one_page(self):
        found = [pages.words_of(arguments)[1] for path in tree.own_pages() for kind, arguments in pages.DIRECTIVE.findall(tree.read(path))
                 if kind == "include" and arguments.startswith("README.md ")]
        lines = {arguments for path in tree.own_pages() for kind, arguments in pages.DIRECTIVE.findall(tree.read(path)) if kind == "lines"}
        headings = re.findall(r"^## (.*)$", readme.text(), re.MULTILINE)
        self.assertEqual(sorted(found), sorted(set(headings) - {readme.FIVE_LINES}))
        self.assertEqual(lines, set(readme.LIBRARIES), f"the section {readme.FIVE_LINES} is on the pages of the libraries")

    def test_every_directive_is_replaced(self):
        for path in self.pages:
            with open(path, encoding="utf-8") as file:
                self.assertNotRegex(file.read(), "<!-- (?:include|lines|manuals)", path)

    def test_options_can_be_searched(self):
        with open(os.path.join(self.place, "search", "search_index.js"), encoding="utf-8") as file:
            index = file.read()
        self.assertIn("man/fi_cluster_network.7.html#RUNTIME_PARAMETERS", index)
        self.assertIn("FI_CLUSTER_RAILS", index)

    @unittest.skipUnless(shutil.which("chromium"), "no chromium")
    def test_the_search_of_a_file_in_a_browser(self):
        with tempfile.TemporaryDirectory(prefix="site-") as profile:
            shown = subprocess.run(["chromium", "--headless", "--no-sandbox", f"--user-data-dir={profile}", "--virtual-time-budget=20000",
                                    "--dump-dom", f"file://{self.place}/index.html?q=FI_CLUSTER_QDISC_BYPASS"],
                                   capture_output=True, text=True, timeout=100, check=False).stdout
        self.assertRegex(shown, r'md-search-result__meta">\d+ matching document')
        self.assertIn("man/fi_cluster_network.7.html", shown.partition("md-search-result__meta")[2])


if __name__ == "__main__":
    if reason := builder.missing():
        virtual_nodes.skip(reason)
    unittest.main(argv=["site_test"], verbosity=2)
