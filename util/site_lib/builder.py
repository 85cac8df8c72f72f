"""Runs MkDocs, which `util/setup --for docs` puts into build/docs."""
import os
import shutil
import subprocess
import sys

from . import manual, tree

QUIET = {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _mkdocs():
    own = tree.TOP / "build" / "docs" / "bin" / "mkdocs"
    return str(own) if own.exists() else shutil.which("mkdocs")


def missing():
    """What is not installed, or None."""
    names = [name for name, there in (("mkdocs", _mkdocs() is not None), ("mandoc", manual.available())) if not there]
    return f"not installed: {' and '.join(names)} (util/setup --for docs)" if names else None


def _run(*words):
    if reason := missing():
        print(f"site: {reason}", file=sys.stderr)
        return 1
    return subprocess.run([_mkdocs(), *words], cwd=tree.TOP, env={**os.environ, **QUIET}, check=False).returncode


def build(out=None):
    place = os.path.abspath(out or tree.TOP / "build" / "site")
    status = _run("build", "--quiet", "--site-dir", place)
    if status == 0:
        print(f"{place}/index.html")
    return status


def serve():
    return _run("serve", "--watch", "man", "--watch", "README.md")
