"""The packages that the agent needs are Debian's: where `python3` is another one, Debian's takes over."""
import importlib.util
import os
import sys

from cluster_lib import build

from .errors import AgentError

SYSTEM = "/usr/bin/python3"
NEEDED = ("psutil", "prometheus_client")


def missing(needed=NEEDED):
    return [name for name in needed if importlib.util.find_spec(name) is None]


def with_packages(install=True, purpose="agent", needed=NEEDED):
    """Returns if everything is there, or can be installed; goes on as Debian's python3 if that is not this one."""
    if not missing(needed):
        return
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM) and os.access(SYSTEM, os.X_OK):
        os.execv(SYSTEM, [SYSTEM, "-B", *sys.argv])
    if install:
        build.packages(purpose)
        importlib.invalidate_caches()
    if missing(needed):
        raise AgentError(f"Python packages are missing: {', '.join(missing(needed))} (Debian: util/setup --for {purpose})")
