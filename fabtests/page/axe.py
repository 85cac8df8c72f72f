"""axe-core, which finds what people with a screen reader, a keyboard or weak eyes cannot use. npm fetches it once, into build/."""
import os

from cluster_lib import build
from cluster_page_lib import assets

_PACKAGE = {"axe-core@4.10.3": ("5e6edba515e70d25f6604d9815f064d859c5d1ea7ab661bbc4f87c88779ef0c2"
                                "1cae0abbeb636471ef39e9d62d2582e4b88a1866f19f4ecfcf6d986275e4dc12", ("axe.min.js",))}
_PLACE = os.path.join(build.TOP, "build", "page-test")
# The rules of WCAG 2.1, levels A and AA, and what axe calls good practice.
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(found => done(found.violations.map(
  rule => rule.id + ": " + rule.nodes.slice(0, 3).map(node => node.target.join(" ") + " " + node.html.slice(0, 120)).join("; "))),
  error => done([String(error)]));"""


def source():
    """The script; BuildError if it can not be had."""
    path = os.path.join(_PLACE, "axe.min.js")
    if not os.path.exists(path):
        assets.fetch(_PLACE, _PACKAGE)
    with open(path, encoding="utf-8") as file:
        return file.read()


def violations(driver, script):
    """Each rule that the page breaks, with the elements that break it."""
    driver.execute_script(script)
    return driver.execute_async_script(_RUN)
