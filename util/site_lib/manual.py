"""A manual, or a part of one, as text that MkDocs takes: headings in Markdown, and between them what mandoc writes as HTML."""
import re
import shutil
import subprocess

from . import tree

TABLES = "'\\\" t\n"


def available():
    return shutil.which("mandoc") is not None


def names():
    """{(name, section): path in the tree}"""
    found = {}
    for path in tree.manuals():
        name, _, section = path[len("man/"):].rpartition(".")
        found[name, section] = path
    return found


def _heading(source):
    return re.search(r"^\.TH .*$", source, re.MULTILINE).group(0)


def _html(source):
    text = subprocess.run(["mandoc", "-T", "html", "-O", "fragment"], input=source, capture_output=True, text=True, check=True).stdout
    text = re.sub(r'<table class="(?:head|foot)">.*?</table>\n', "", text, flags=re.DOTALL).replace('<p class="Pp">\n  <br/>\n</p>\n', "")
    return re.sub(r"<pre>.*?</pre>", lambda block: block.group(0).replace("<br/>\n", ""), text, flags=re.DOTALL)


def options():
    """{option of the provider: the manual that has a paragraph about it}"""
    return {name: path for path in tree.manuals() for name in re.findall(r"^\.TP\n\.B (FI_CLUSTER_\w+)$", tree.read(path), re.MULTILINE)}


def _linked(html, link):
    """Each reference to a manual of the tree becomes a link, and so does each option in bold or in a cell of its own."""
    known, described = names(), options()

    def reference(found):
        path = known.get((found.group(1), found.group(2)))
        return f'<a href="{link(path)}">{found.group(0)}</a>' if path else found.group(0)

    def option(found):
        before, name, after = found.groups()
        return f'{before}<a href="{link(described[name])}#{name}">{name}</a>{after}' if name in described else found.group(0)

    html = re.sub(r"<b>([\w-]+)</b>\((\d)\)", reference, html)
    return re.sub(r"((?<!\">)<b>|<td[^>]*>)(FI_CLUSTER_\w+)(</b>|</td>)", option, html)


def _block(html):
    html = re.sub(r"</?section[^>]*>\n?|</?div[^>]*>\n?", "", html).strip()
    return f'<div class="manual">\n{html}\n</div>' if html else ""


def summary(path):
    """What the line NAME of a manual says."""
    found = re.search(r"^\.SH NAME\n.*? \\- (.*)$", tree.read(path), re.MULTILINE)
    return found.group(1)


def page(path, link):
    """A whole manual. `link` gives the address of another manual."""
    name, _, section = path[len("man/"):].rpartition(".")
    parts = re.split(r'<h([12])[^>]* id="([^"]*)"><a[^>]*>(.*?)</a></h[12]>\n', _linked(_html(tree.read(path)), link), flags=re.DOTALL)
    text = [f"# {name}({section})", summary(path)[:1].upper() + summary(path)[1:] + "."]
    for level, anchor, title, html in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4]):
        if title != "NAME":
            words = " ".join(title.split())
            text += [f"{'#' * (int(level) + 1)} {words if level == '2' else words.capitalize()} {{#{anchor}}}", _block(html)]
    return "\n\n".join(text) + "\n"


def part(path, link, heading, paragraph=None):
    """The text of one section of a manual, or of the paragraph of it whose head begins with `paragraph`."""
    source = tree.read(path)
    sections = dict(re.findall(r'^\.SH "?(.*?)"?\n(.*?)(?=^\.SH |\Z)', source, re.MULTILINE | re.DOTALL))
    text = sections[heading]
    if paragraph is not None:
        found = [each for each in re.split(r"^\.TP\n", text, flags=re.MULTILINE)[1:]
                 if re.match(r"\.[A-Z]+ \"?" + re.escape(paragraph), each)]
        if len(found) != 1:
            raise ValueError(f"{path}, {heading}: {len(found)} paragraphs begin with {paragraph}")
        text = found[0].partition("\n")[2]
        text = re.sub(r"^\.IP$", ".PP", text, flags=re.MULTILINE)
    html = _html(f"{TABLES}{_heading(source)}\n.SH X\n{text}")
    return _block(_linked(html.partition("</h1>\n")[2], link))
