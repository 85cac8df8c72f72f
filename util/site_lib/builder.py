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


def _run(*words, **settings):
    if reason := missing():
        print(f"site: {reason}", file=sys.stderr)
        return subprocess.CompletedProcess(words, 1, "")
    return subprocess.run([_mkdocs(), *words], cwd=tree.TOP, env={**os.environ, **QUIET}, check=False, **settings)


def build(out=None):
    """MkDocs counts warnings only if it may print them, so its other lines are left out here."""
    place = os.path.abspath(out or tree.TOP / "build" / "site")
    done = _run("build", "--site-dir", place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in done.stdout.splitlines():
        if line and not line.startswith("INFO "):
            print(line, file=sys.stderr)
    if done.returncode == 0:
        print(f"{place}/index.html")
    return done.returncode


def serve():
    return _run("serve", "--watch", "man", "--watch", "README.md").returncode
