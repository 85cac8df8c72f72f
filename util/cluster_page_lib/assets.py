"""Third-party scripts that the page serves: npm fetches them once, hashes verify them, and they are never part of this
tree.

`python3 -m cluster_page_lib.assets` (util/setup --for page) fetches them; an installed tree has them from its package.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

from cluster_lib import build

# name and version -> (SHA-512 of the package, its files that are served)
PACKAGES = {
    "htmx.org@2.0.6": ("ef2b618d89de192937c821e0b429d079aa05f83fa8ed4d8b177ed65373b4258b"
                       "f781365289c74416223f022fcd2720b966960958ca546f5d4e0b92ebe807c0a8", ("dist/htmx.min.js",)),
    "uplot@1.6.32": ("2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935"
                     "c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023",
                     ("dist/uPlot.iife.min.js", "dist/uPlot.min.css")),
    "@xterm/xterm@5.5.0": ("86a24761a41be4ea6d36e9e7c809e41f233c6828d9d4c1080d342ed6221b6d30"
                           "ffc68a6cf75341e72ab564afdd0b62436d55ad176df352d97d244d8dab04fcec", ("lib/xterm.js", "css/xterm.css")),
    "@xterm/addon-fit@0.10.0": ("5056240e6e0751a85fda59c4c87be2a39d5334688b2baea6a8fd89a004f2ee14"
                                "597976863110ebd34262485ee6eb7bd1e562804c5eb4e721208092acc3426931", ("lib/addon-fit.js",))}
FILES = [os.path.basename(path) for _, paths in PACKAGES.values() for path in paths]


def directory():
    if build.installed:
        return os.path.join(os.path.dirname(os.path.realpath(__file__)), "assets")
    return os.path.join(build.TOP, "build", "page-assets")


def missing(where=None):
    return [name for name in FILES if not os.path.exists(os.path.join(where or directory(), name))]


def ensure():
    """A sentence about missing scripts, or nothing. In the source tree this fetches them, or raises a BuildError. An
    installed tree may come from a package that was built without network and has none."""
    if missing() and build.installed:
        return f"{directory()} lacks {', '.join(missing())}, so the web pages do not refresh themselves and show no graphs, no terminal and no output of jobs"
    if missing():
        build.packages("page")
    if missing():
        raise build.BuildError(f"{', '.join(missing())}: not in {directory()}; \"util/setup --for page\" fetches them")
    return ""


def fetch(target, packages=None):
    """Installs the files: all or none. `packages`: others than those that the page serves."""
    packages = packages or PACKAGES
    os.makedirs(target, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for package, (digest, paths) in packages.items():
            result = subprocess.run(["npm", "pack", "--loglevel=error", package], cwd=work, capture_output=True, text=True, check=False)
            if result.returncode:
                raise build.BuildError(f"npm pack {package} failed: {(result.stderr.strip().splitlines() or ['?'])[0]}")
            archive = os.path.join(work, result.stdout.strip().splitlines()[-1])
            with open(archive, "rb") as file:
                found = hashlib.file_digest(file, "sha512").hexdigest()
            if found != digest:
                raise build.BuildError(f"{package} is not what was reviewed: SHA-512 {found}")
            with tarfile.open(archive) as tar:
                for path in paths:
                    with tar.extractfile(f"package/{path}") as source, open(os.path.join(work, os.path.basename(path)), "wb") as out:
                        shutil.copyfileobj(source, out)
        for _, paths in packages.values():
            for name in map(os.path.basename, paths):
                shutil.copy(os.path.join(work, name), os.path.join(target, name))


if __name__ == "__main__":
    try:
        place = sys.argv[1] if len(sys.argv) > 1 else directory()
        if missing(place):
            fetch(place)
    except (build.BuildError, OSError) as error:
        sys.exit(f"setup: {error}")
